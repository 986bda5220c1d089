"""Words of llama-server's command line that a campaign or suite adds: `engine_args`.

`measurement.engine_args` are those of every server, and each level of a suite that varies
`engine_args` has further ones. What specmoe sets itself is refused; the engine judges the rest.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

# Names of flags without their dashes, as `engine.server` and `engine.flags` set them and by their
# further names, by the key that decides them; `*` is any text.
_SET: dict[str, str] = {
    "the model set": "model m",
    "measurement.context": "ctx-size c",
    "measurement.threads": "threads t",
    "measurement.gpu_layers": "gpu-layers n-gpu-layers ngl",
    "a suite's factor `requests`": "parallel np",
    "drafts, methods, gammas and forced acceptance of a suite": """
        spec-* no-spec-* draft draft-* *-draft lookup-cache-static lcs
        hfd hfrd md devd ngld otd cmoed ncmoed td tbd Cd Crd Cbd ctkd ctvd
    """,
    "the protocol": """
        host metrics ui webui no-ui no-webui ctx-checkpoints swa-checkpoints ctxcp cache-ram cram
        log-verbosity verbosity lv
    """,
}
_FLAG = re.compile(r"-(?!\.?\d).*")


def _accepted(words: list[str]) -> list[str]:
    for word in filter(_FLAG.fullmatch, words):
        # The engine reads `_` as `-`. Only names of one dash differ by their letters' case.
        name = word.lstrip("-").replace("_", "-")
        name = name.lower() if word.startswith("--") else name
        for key, patterns in _SET.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
                raise ValueError(f"{word} is refused: {key} decides it")
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
EngineArgs = Annotated[list[_Word], AfterValidator(_accepted)]


def value_of(args: Sequence[str], *names: str) -> str | None:
    """Return the last value of a flag among words, by any of its names; None without one."""
    at = [place for place, word in enumerate(args[:-1]) if word in names]
    return args[at[-1] + 1] if at else None
