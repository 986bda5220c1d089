"""The engine's options as text: of a row, and of an id.

Options are the values of llama-server's flags by the flags' names without dashes, and `extra_args`
are further words of its command line. Measuring needs nothing else of options: which there are, and
their labels, is in `engine_options`.
"""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence

OptionValue = str | int | bool | None
Options = Mapping[str, OptionValue]

# The names of a draft's own options end so.
OF_DRAFT = "-draft"
# What may be a part of a file's name on every system, and of a block's id.
_SAFE = re.compile(r"[A-Za-z0-9._=-]+")
_LONGEST_ID = 80  # characters; a file's name may have 255 bytes
_DIGITS = 8
CONCURRENCY = "concurrency"
_AT_ONCE = re.compile(rf"\+{CONCURRENCY}=\d+$")
_DEFAULT = "default"  # a value that an entry takes back from the campaign


def concerns_draft(name: str) -> bool:
    """Return whether only a draft has use for an option."""
    return name.endswith(OF_DRAFT)


def options_text(options: Options, extra_args: Sequence[str]) -> str:
    """Return options as a row has them: in the order of their names, the further words last.

    Equal options give equal text, and none give the empty one. A shell reads the words back.
    """
    words = [f"{name}={value_text(options[name])}" for name in sorted(options)]
    return shlex.join([*words, *(["--", *extra_args] if extra_args else [])])


def options_id(options: Options, extra_args: Sequence[str]) -> str:
    """Return options as a part of ids and of files' names, empty without any.

    Those that are too long for that, or have other characters, are named by a digest.
    """
    parts = [*(f"{name}={value_text(options[name])}" for name in sorted(options)), *extra_args]
    text = "+".join(parts)
    if len(text) <= _LONGEST_ID and all(map(_SAFE.fullmatch, parts)):
        return text
    digest = hashlib.sha256(options_text(options, extra_args).encode()).hexdigest()
    return f"options-{digest[:_DIGITS]}"


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


def value_text(value: OptionValue) -> str:
    """Return a value in words; null is the engine's default."""
    if value is None:
        return _DEFAULT
    return str(value).lower() if isinstance(value, bool) else str(value)
