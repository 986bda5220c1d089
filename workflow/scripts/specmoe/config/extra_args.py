"""Which words of llama-server's command line `extra_args` may not have, and why.

What a protocol relies on, the configuration has a key for, or brings in a file that nothing would
record is refused by name, under all names that the engine has for it. What it does not know, an
engine refuses by itself.
"""

import re
from collections.abc import Mapping, Sequence

# Names of flags without their dashes, by the reason to refuse them; `*` is any text.
_REFUSED: dict[str, str] = {
    "the workflow reaches each server by a socket of its own": """
        host port reuse-port path api-prefix cors-* no-cors-* ssl-* timeout to threads-http
        sleep-idle-seconds sse-ping-interval ui* no-ui* webui* no-webui*
    """,
    "the workflow's requests have no key": "api-key*",
    "a suite's concurrency says how many requests there are at once": "parallel np",
    "each slot of a process has measurement.context": """
        ctx-size c kv-unified* kvu no-kv-unified no-kvu cont-batching cb
        no-cont-batching nocb context-shift no-context-shift fit-ctx fitc keep
    """,
    "a run must find nothing of an earlier one": """
        cache-prompt no-cache-prompt cache-reuse cache-ram cram cache-idle-slots
        no-cache-idle-slots ctx-checkpoints swa-checkpoints ctxcp checkpoint-* cms slot-* sps
        lookup-cache-dynamic lcd
    """,
    "the workflow asks each server for its counters and slots": """
        metrics slots no-slots props
    """,
    "the workflow reads what each server logs": """
        log-* no-log-* verbose v verbosity lv perf no-perf
    """,
    "what drafts, and how, is a suite's to say, in drafts, methods and engine_options": """
        spec-* no-spec-* draft draft-* *-draft lookup-cache-static lcs
        hfd hfrd md devd ngld otd cmoed ncmoed td tbd Cd Crd Cbd ctkd ctvd
    """,
    "models come from the model set, which checks and records their files": """
        model model-* m mu models-* no-models-* hf-* hf hfr hff hfv hffv hft docker-repo dr lora*
        control-vector* mmproj* no-mmproj* mm mmu mmdev override-kv alias a tags offline
        fim-* gpt-oss-* embd-* vision-* media-path chat-template-file
    """,
    "each request says how to sample, and when to stop": """
        samplers sampler-* sampling-* seed s ignore-eos temp temperature top-* min-p typical*
        xtc-* repeat-* presence-penalty frequency-penalty dry-* adaptive-* dynatemp-* mirostat*
        logit-bias l grammar* json-schema* j jf backend-sampling bs predict n-predict n
        reverse-prompt r special sp
    """,
    "measurement.gpu_layers decides it": "gpu-layers n-gpu-layers ngl",
    "a campaign is one machine": "rpc",
    "the server would do something else than generate": """
        help h usage version cache-list cl completion-* list-devices embedding* rerank* pooling
        tools* mcp-* agent ag no-agent no-ag
    """,
}
_NUMBER = re.compile(r"-\.?\d.*")


def fault_of_extra_args(words: Sequence[str], options: Mapping[str, str]) -> str | None:
    """Return why words cannot be added to the engine's command line; None if they may be.

    `options` are those that `engine_options` has, by all of their names without dashes.
    """
    if words and not _is_flag(words[0]):
        return f"{words[0]!r} is no flag; each flag, and each value of one, is a word of the list"
    for word in filter(_is_flag, words):
        # The engine reads `_` as `-`.
        name = word.lstrip("-").partition("=")[0].replace("_", "-")
        reason = f"give it as {options[name]!r} instead" if name in options else None
        reason = reason or _reason(name)
        if reason:
            return f"{word} is refused: {reason}"
    return None


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not _NUMBER.fullmatch(word)


def _reason(name: str) -> str | None:
    for reason, patterns in _REFUSED.items():
        if any(_matches(name, pattern) for pattern in patterns.split()):
            return reason
    return None


def _matches(name: str, pattern: str) -> bool:
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name))
