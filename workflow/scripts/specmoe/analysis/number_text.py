"""Numbers as text with the signs of print, neither LaTeX nor HTML: `−1.3`, `±`, `[0.50, 1.50]`."""

from collections.abc import Mapping
from math import inf
from typing import Any

import pandas as pd

DASH = "–"  # of a value that was not measured
TOO_FEW = "too few repeats"  # of an interval that says next to nothing
TOO_FEW_PROMPTS = "too few prompts"  # the same of an interval for other prompts
THIN = "\N{NARROW NO-BREAK SPACE}"
_WIDEST = 4  # the high end over the low one
_COMMIT_DIGITS = 12
_NAMED_PROMPTS = 8


def shown(value: Any) -> str:
    """Return the text of any value, a dash for null."""
    # `str` first: an undefined template variable must raise; an `if` without `else` is empty.
    text = str(value)
    return DASH if text and pd.isna(value) else text


def fixed(value: float | None, digits: int = 1) -> str:
    """Return a number with that many decimals, and thin spaces between groups of three digits."""
    if pd.isna(value):
        return DASH
    return "∞" if value == inf else f"{value:,.{digits}f}".replace(",", THIN).replace("-", "−")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share (0..1) in percent, without the sign, which the table's heading has."""
    return fixed(value if pd.isna(value) else 100 * value, digits)


def thousands(value: int | None) -> str:
    """Return a count, without decimals."""
    return fixed(value, 0)


def span(ends: tuple[float, float], digits: int = 1, between: str = " to ") -> str:
    """Return the ends of a range: where both print the same, as one number."""
    return between.join(dict.fromkeys(fixed(end, digits) for end in ends))


def prompt_text(prompts: str) -> str:
    """Return words for a set of prompts, by their ids in one text; many are only counted."""
    count = len(prompts.split(", "))
    return f"{count} prompts" if count > _NAMED_PROMPTS else prompts


def prompts_in_short(prompts: str) -> str:
    """Return prompts by the word that all ids begin with, as in `chats (4)`; others as a count."""
    names = prompts.split(", ")
    first = {name.partition("-")[0] for name in names}
    if len(names) == 1:
        return prompts
    return f"{first.pop()} ({len(names)})" if len(first) == 1 else f"{len(names)} prompts"


def day(time: Any) -> str:
    """Return the day of a time as a date; nothing for null."""
    return "" if pd.isna(time) else f"{pd.Timestamp(time):%Y-%m-%d}"


def parameters(count: int | None) -> str:
    """Return a number of parameters in billions (B), or below half a billion in millions (M)."""
    return _scaled(count, *((1e9, "B") if pd.notna(count) and count >= 5e8 else (1e6, "M")))


def size(count: int | None) -> str:
    """Return a file's number of bytes in gigabytes or megabytes (powers of ten)."""
    return _scaled(count, *((1e9, "GB") if pd.notna(count) and count >= 1e9 else (1e6, "MB")))


def memory(count: int | None) -> str:
    """Return a machine's number of bytes in gibibytes, as memory is sold."""
    return _scaled(count, 2**30, "GiB")


def short_commits(commits: str) -> str:
    """Return the first digits of each commit; a campaign of several engines has several."""
    return ", ".join(commit.partition("-")[0][:_COMMIT_DIGITS] for commit in commits.split(", "))


def plus_minus(deviation: float | None, digits: int = 1) -> str:
    """Return `± deviation`, or nothing for null."""
    return "" if pd.isna(deviation) else f"±{THIN}{fixed(deviation, digits)}"


def interval(
    low: float | None,
    high: float | None,
    digits: int = 2,
    *,
    ratio: bool = True,
    wide: str = TOO_FEW,
) -> str:
    """Return `[low, high]`, with a dash for an open end, or nothing if both are null.

    An interval of a ratio, a rate or a time that is wider than 4 to 1 is `wide` in words. One of a
    share or a difference (not `ratio`) is always shown: it may well be near zero.
    """
    if pd.isna(low) and pd.isna(high):
        return ""
    if ratio and pd.notna(low) and pd.notna(high) and 0 <= _WIDEST * low < high:
        return wide
    return f"[{fixed(low, digits)}, {fixed(high, digits)}]"


def measured(
    value: float | None, low: float | None, high: float | None, digits: int = 2, **how: Any
) -> str:
    """Return a number with its interval, if it has one; `how` is as in `interval`.

    Words in the place of an interval are in brackets, so that a sentence can go on behind them.
    """
    reach = interval(low, high, digits, **how)
    reach = f"({reach})" if reach and not reach.startswith("[") else reach
    return f"{fixed(value, digits)} {reach}".rstrip()


def measured_in(row: Mapping[str, Any], name: str, **how: Any) -> str:
    """Return the number in a row's column, with its interval in `<name>_low` and `<name>_high`."""
    return measured(*(row[f"{name}{end}"] for end in ("", "_low", "_high")), **how)


def _scaled(count: float | None, divisor: float, unit: str) -> str:
    return DASH if pd.isna(count) else f"{fixed(count / divisor)}{THIN}{unit}"
