"""Words of llama-server's command line that a campaign or suite adds: `engine_args`.

`measurement.engine_args` are those of every server, and each entry of a suite's list makes
comparisons of its own. What specmoe sets itself is refused; the engine judges the rest.
"""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    "concurrency of a suite": "parallel np",
    "drafts, methods, gammas and imposed_acceptance of a suite": """
        spec-* no-spec-* draft draft-* *-draft lookup-cache-static lcs
        hfd hfrd md devd ngld otd cmoed ncmoed td tbd Cd Crd Cbd ctkd ctvd
    """,
    "the protocol": """
        host metrics ui webui no-ui no-webui ctx-checkpoints swa-checkpoints ctxcp cache-ram cram
        log-verbosity verbosity lv
    """,
}
_FLAG = re.compile(r"-(?!\.?\d).*")
# What may be a part of a file's name on every system, and of a block's id.
_SAFE = re.compile(r"[A-Za-z0-9._=-]+")
_LONGEST_ID = 80  # characters; a file's name may have 255 bytes
_DIGITS = 8
CONCURRENCY = "concurrency"
_AT_ONCE = re.compile(rf"\+{CONCURRENCY}=\d+$")


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


@dataclass(frozen=True)
class Setting:
    """The words of a comparison, and how they are told from the campaign's own."""

    args: tuple[str, ...]
    id: str  # empty: those of the campaign
    label: str
    concurrency: int | None = None  # requests at once; None: one after the other, without a load

    @classmethod
    def of(cls, of_campaign: Sequence[str], entry: Sequence[str]) -> "Setting":
        """Return the words of an entry of a suite behind those of the campaign."""
        return cls((*of_campaign, *entry), options_id(entry), " ".join(entry))

    @property
    def text(self) -> str:
        """The words as rows have them, see `options_text`."""
        return options_text(self.args)

    def at(self, concurrency: int) -> "Setting":
        """Return the same words under a load of so many requests at once."""
        words = f"{concurrency} at once"
        return replace(
            self,
            id=concurrent_setting(self.id, concurrency),
            label=", ".join([*filter(None, [self.label]), words]),
            concurrency=concurrency,
        )


def options_text(args: Sequence[str]) -> str:
    """Return words as a row has them, empty without any; a shell reads them back."""
    return shlex.join(args)


def options_id(args: Sequence[str]) -> str:
    """Return words as a part of ids and of files' names, empty without any.

    Those that are too long for that, or have other characters, are named by a digest.
    """
    text = "+".join(args)
    if len(text) <= _LONGEST_ID and all(map(_SAFE.fullmatch, args)):
        return text
    return f"options-{hashlib.sha256(options_text(args).encode()).hexdigest()[:_DIGITS]}"


def value_of(args: Sequence[str], *names: str) -> str | None:
    """Return the last value of a flag among words, by any of its names; None without one."""
    at = [place for place, word in enumerate(args[:-1]) if word in names]
    return args[at[-1] + 1] if at else None


def target_setting(target: str, of_options: str) -> str:
    """Return the id of what verifies: a target, and its options' id if it has one."""
    return f"{target}+{of_options}" if of_options else target


def concurrent_setting(of_options: str, concurrency: int) -> str:
    """Return the id of options with the number of requests at once."""
    return "+".join([*filter(None, [of_options]), f"{CONCURRENCY}={concurrency}"])


def parts_of_setting(setting: str) -> tuple[str, str]:
    """Return the target and the options' id of a `target_setting`: no name has its sign."""
    target, _, of_options = setting.partition("+")
    return target, of_options


def without_concurrency(setting: str) -> str:
    """Return a `target_setting` without the number of requests at once, if it has one."""
    return _AT_ONCE.sub("", setting)
