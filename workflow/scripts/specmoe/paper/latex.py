"""LaTeX from templates: what a template prints is escaped unless it is marked as LaTeX already."""

import re
from math import inf
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from specmoe.errors import ConfigError

NULL = "--"
"""What stands for a value that was not measured: an en dash."""

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    # At the start of a row these would be read as arguments of the `\\` before it.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    # A pair of hyphens would become a dash.
    "--": "-{}-",
}
_SPECIAL = re.compile(r"--|[\\{}$&#%_^~\[\]*]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
_WORDS = {**{str(digit): word for digit, word in enumerate(_DIGITS)}, ".": "Point"}


class Raw(str):
    """Text that is LaTeX already and must not be escaped."""

    __slots__ = ()


def escape(text: str) -> Raw:
    """Return LaTeX that prints `text` and does nothing else.

    Line ends become spaces and control characters vanish, as TeX refuses them. Characters that are
    not special are kept, those of other scripts included: the document must have fonts for them.
    """
    text = " ".join(_CONTROL.sub("", text).split())
    return Raw(_SPECIAL.sub(lambda match: _ESCAPES[match[0]], text))


def to_latex(value: Any) -> Raw:
    """Return the LaTeX of any value: itself if raw, a dash if null, else its text, escaped."""
    if isinstance(value, Raw):
        return value
    # Asked first, because an undefined template variable must raise and not count as null.
    text = str(value)
    return Raw(NULL) if pd.isna(value) else escape(text)


def fixed(value: float | None, digits: int = 1) -> Raw:
    """Return a number with that many decimals."""
    if pd.isna(value):
        return Raw(NULL)
    if value == inf:
        return Raw(r"$\infty$")
    text = f"{value:.{digits}f}"
    return Raw(text.replace("-", "$-$"))


def percent(value: float | None, digits: int = 1) -> Raw:
    """Return a share (0..1) in percent, without the sign, which stands in the table's head."""
    return fixed(value if pd.isna(value) else 100 * value, digits)


def thousands(value: int | None) -> Raw:
    """Return a count with thin spaces between groups of three digits."""
    return Raw(NULL) if pd.isna(value) else Raw(f"{int(value):,}".replace(",", r"\,"))


def parameters(count: int | None) -> Raw:
    """Return a number of parameters in billions (B), or below half a billion in millions (M)."""
    return _scaled(count, 1e9, "B") if _at_least(count, 5e8) else _scaled(count, 1e6, "M")


def size(count: int | None) -> Raw:
    """Return a file's number of bytes in gigabytes or megabytes (powers of ten)."""
    return _scaled(count, 1e9, "GB") if _at_least(count, 1e9) else _scaled(count, 1e6, "MB")


def memory(count: int | None) -> Raw:
    """Return a machine's number of bytes in gibibytes, as memory is sold."""
    return _scaled(count, 2**30, "GiB")


def bandwidth(rate: float | None) -> Raw:
    """Return bytes a second in powers of ten, as memory bandwidth is stated."""
    return _scaled(rate, 10**9, "GB/s")


def plus_minus(deviation: float | None, digits: int = 1) -> Raw:
    """Return `± deviation`, or nothing if there is none."""
    return Raw("") if pd.isna(deviation) else Raw(rf"$\pm$\,{fixed(deviation, digits)}")


def interval(low: float | None, high: float | None, digits: int = 2) -> Raw:
    """Return `[low, high]`, with a dash for an end that is open, or nothing if both are null."""
    if pd.isna(low) and pd.isna(high):
        return Raw("")
    return Raw(f"[{fixed(low, digits)}, {fixed(high, digits)}]")


def bold(value: Any, when: bool = True) -> Raw:
    """Return the value in bold, if `when`."""
    return Raw(rf"\textbf{{{to_latex(value)}}}") if when else to_latex(value)


def command_name(*parts: str | int) -> str:
    r"""Return the letters of a TeX command made of words and ids, e.g. `SpeedupMoeQFour`.

    TeX allows letters alone, so digits and dots become words: `draft_0.8b` is
    `DraftZeroPointEightB`. Raises ConfigError when no letter would be left.
    """
    pieces = re.findall(r"[A-Za-z]+|[0-9.]", " ".join(str(part) for part in parts))
    name = "".join(_WORDS.get(piece) or piece[0].upper() + piece[1:] for piece in pieces)
    if not name:
        raise ConfigError(f"{parts!r} has nothing that a LaTeX command could be named by")
    return name


def environment(templates: Path) -> jinja2.Environment:
    r"""Return the template environment of a folder.

    Delimiters that TeX editors accept: `\VAR{...}` prints, `%%` starts a statement, `%#` a comment
    line, and `\BLOCK{...}` and `\#{...}` do the same inside a line. The filters are the functions
    of this module. An undefined name is an error.
    """
    env = jinja2.Environment(
        block_start_string=r"\BLOCK{",
        block_end_string="}",
        variable_start_string=r"\VAR{",
        variable_end_string="}",
        comment_start_string=r"\#{",
        comment_end_string="}",
        line_statement_prefix="%%",
        line_comment_prefix="%#",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (that is HTML's; `finalize` escapes for LaTeX)
        finalize=to_latex,
        loader=jinja2.FileSystemLoader(templates),
    )
    filters = (fixed, percent, thousands, parameters, size, plus_minus, interval, bold)
    env.filters.update({function.__name__: function for function in filters})
    return env


def _at_least(count: int | None, bound: float) -> bool:
    return bool(pd.notna(count) and count >= bound)


def _scaled(count: float | None, divisor: float, unit: str) -> Raw:
    return Raw(NULL) if pd.isna(count) else Raw(rf"{count / divisor:.1f}\,{unit}")
