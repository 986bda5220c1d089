"""Options of the engine that a campaign or suite may set, by the engine's own names.

`measurement.engine_options` are those of every process, and each entry of a suite's list makes
comparisons of its own. Types and ranges are those of llama.cpp's `common/arg.cpp`; a test compares
the names with what `llama-server --help` prints.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_serializer,
)

from specmoe.config.base import Count, Positive, Strict
from specmoe.config.option_words import (
    OF_DRAFT,
    Options,
    OptionValue,
    concurrent_setting,
    options_id,
    options_text,
    value_text,
)

_CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
# YAML reads `on` and `off` as true and false.
_Switch = Annotated[
    Literal["on", "off", "auto"],
    BeforeValidator(lambda value: {True: "on", False: "off"}.get(value, value)),
    WithJsonSchema({"anyOf": [{"enum": ["on", "off", "auto"]}, {"type": "boolean"}]}),
]
_Devices = Annotated[str, StringConstraints(pattern=r"^[\w:.-]+(,[\w:.-]+)*$")]
# Patterns of tensors' names, each with the buffer type that these tensors go to.
_Tensors = Annotated[str, StringConstraints(pattern=r"^[^=,\s]+=[^=,\s]+(,[^=,\s]+=[^=,\s]+)*$")]

# Further names that the engine has for the options; those of drafts are refused by their form.
_ALIASES = {
    **{"ctk": "cache-type-k", "ctv": "cache-type-v", "fa": "flash-attn", "cmoe": "cpu-moe"},
    **{"ncmoe": "n-cpu-moe", "ot": "override-tensor", "b": "batch-size", "ub": "ubatch-size"},
    **{"t": "threads", "tb": "threads-batch", "lm": "load-mode", "dev": "device"},
}
# What `extra_args` may not have: what a protocol relies on, what the configuration has a key for,
# and files that nothing would record, under all names that the engine has. An engine refuses by
# itself what it does not know.
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
    "what drafts is set by the suite, in drafts, methods and engine_options": """
        spec-* no-spec-* draft draft-* *-draft lookup-cache-static lcs
        hfd hfrd md devd ngld otd cmoed ncmoed td tbd Cd Crd Cbd ctkd ctvd
    """,
    "models come from the model set, which checks and records their files": """
        model model-* m mu models-* no-models-* hf-* hf hfr hff hfv hffv hft docker-repo dr lora*
        control-vector* mmproj* no-mmproj* mm mmu mmdev override-kv alias a tags offline
        fim-* gpt-oss-* embd-* vision-* media-path chat-template chat-template-file
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
_FLAG = re.compile(r"-(?!\.?\d).*")


def _accepted(words: list[str]) -> list[str]:
    if words and not _FLAG.fullmatch(words[0]):
        raise ValueError(
            f"{words[0]!r} is no flag; each flag, and each value of one, is a word of the list"
        )
    for word in filter(_FLAG.fullmatch, words):
        # The engine reads `_` as `-`. Only names of one dash differ by their letters' case.
        name = word.lstrip("-").partition("=")[0].replace("_", "-")
        name = name.lower() if word.startswith("--") else name
        option = _ALIASES.get(name, name)
        if option in OPTION_NAMES:
            raise ValueError(f"{word} is refused: give it as {option!r} instead")
        for reason, patterns in _REFUSED.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
                raise ValueError(f"{word} is refused: {reason}")
    return words


def _printable(word: str) -> str:
    if not word or not word.isprintable():
        raise ValueError(f"{word!r} is empty, or cannot be printed")
    return word


_Word = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value),
    AfterValidator(_printable),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]


class EngineOptions(Strict):
    """Flags of llama-server by its own names; null is the engine's default.

    The target alone and the target with a draft always get the same. Only a process in which a
    model drafts gets the options that end in `-draft`. On a CPU, options that place weights
    (`n-cpu-moe`, `cpu-moe`, `override-tensor`) are accepted and change nothing.
    """

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    cache_type_k: _CacheType | None = None
    """type of the cached keys"""
    cache_type_v: _CacheType | None = None
    """type of the cached values; a quantized one needs flash attention"""
    flash_attn: _Switch | None = None
    """flash attention; `on` by default where a GPU computes"""
    n_cpu_moe: Count | None = None
    """layers, from the first, whose experts stay in the CPU's memory"""
    cpu_moe: bool | None = None
    """the experts of all layers stay there"""
    override_tensor: _Tensors | None = None
    """where tensors go: `<pattern of names>=<buffer type>`, several with commas"""
    device: _Devices | None = None
    """devices that compute, with commas; `none` for the CPU"""
    load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"] | None = None
    """how files are loaded: mapped, locked in memory, or read"""
    batch_size: Positive | None = None
    """most tokens of a prompt that are handed over at once"""
    ubatch_size: Positive | None = None
    """most tokens that are computed at once"""
    threads: Positive | None = None
    """threads of the engine, in place of `measurement.threads`"""
    threads_batch: Positive | None = None
    """threads that read prompts and verify, where not `threads`"""
    poll: Annotated[int, Field(ge=0, le=100)] | None = None
    """how eagerly threads wait for work; 0 sleeps"""
    cache_type_k_draft: _CacheType | None = None
    """type of the draft's cached keys"""
    cache_type_v_draft: _CacheType | None = None
    """type of the draft's cached values"""
    n_cpu_moe_draft: Count | None = None
    """`n-cpu-moe` of a draft model"""
    cpu_moe_draft: bool | None = None
    """`cpu-moe` of a draft model"""
    override_tensor_draft: _Tensors | None = None
    """`override-tensor` of a draft model"""
    device_draft: _Devices | None = None
    """devices that a draft model computes on"""
    threads_draft: Positive | None = None
    """threads of a draft model, where not `threads`"""
    threads_batch_draft: Positive | None = None
    """threads with which a draft model reads prompts"""
    poll_draft: Annotated[int, Field(ge=0, le=1)] | None = None
    """whether a draft model's threads poll for work"""
    extra_args: Annotated[list[_Word], AfterValidator(_accepted)] = Field(
        default=[], alias="extra_args"
    )
    """further words of llama-server's command line, such as `[--numa, distribute]`; rows have them.
    What a protocol relies on is refused with the reason"""

    @model_serializer
    def given(self) -> dict[str, Any]:
        """Return what was given, by the engine's names; null takes a value of the campaign back."""
        return {
            str(field.alias): getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name in self.model_fields_set
        }

    def overlaid(self, entry: Self) -> "Setting":
        """Return the options of the campaign with an entry of a suite laid over them."""
        of_campaign, of_entry = self.given(), entry.given()
        both = of_campaign | of_entry
        extra_args, own_words = both.pop(EXTRA_ARGS, []), of_entry.pop(EXTRA_ARGS, [])
        kept = {
            name: value
            for name, value in sorted(both.items())
            if value is not None and value is not False
        }
        identity = options_id(of_entry, own_words), options_label(of_entry, own_words)
        return Setting(kept, tuple(extra_args), *identity)


EXTRA_ARGS = "extra_args"
OPTION_NAMES = tuple(
    str(field.alias) for field in EngineOptions.model_fields.values() if field.alias != EXTRA_ARGS
)


@dataclass(frozen=True)
class Setting:
    """The options of a comparison, and how they are told from the campaign's own."""

    options: dict[str, OptionValue]
    extra_args: tuple[str, ...]
    id: str  # empty: those of the campaign
    label: str
    concurrency: int | None = None  # requests at once; None: one after the other, without a load

    @property
    def text(self) -> str:
        """The options as rows have them, see `options_text`."""
        return options_text(self.options, self.extra_args)

    def at(self, concurrency: int) -> "Setting":
        """Return the same options under a load of so many requests at once."""
        words = f"{concurrency} at once"
        return replace(
            self,
            id=concurrent_setting(self.id, concurrency),
            label=", ".join([*filter(None, [self.label]), words]),
            concurrency=concurrency,
        )

    @property
    def threads(self) -> int | None:
        """The option of that name, if it is given."""
        threads = self.options.get("threads")
        return None if threads is None else int(threads)


def options_label(options: Options, extra_args: Sequence[str]) -> str:
    """Return words for options in tables and figures, empty without any."""
    left = dict(options)
    words = []
    for ending, whose in (("", ""), (OF_DRAFT, "draft's ")):
        keys, values = (f"cache-type-{letter}{ending}" for letter in "kv")
        if {keys, values} <= left.keys() and left[keys] == left[values]:
            words.append(f"{whose}KV {value_text(left.pop(keys))}")
            del left[values]
    words += [
        name if left[name] is True else f"{name} {value_text(left[name])}" for name in sorted(left)
    ]
    return ", ".join([*words, *([" ".join(extra_args)] if extra_args else [])])
