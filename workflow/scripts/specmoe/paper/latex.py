"""Text as LaTeX: special characters escaped, the signs of numbers in their LaTeX form."""

import re
from typing import Any

from specmoe.analysis.number_text import DASH, THIN, shown

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
    # A pair of hyphens would become a dash.
    "--": "-{}-",
    DASH: "--",
    THIN: r"\,",
    "−": "$-$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "†": r"$^\dagger$",
}
_SPECIAL = re.compile("--|[" + re.escape("".join(key for key in _ESCAPES if key != "--")) + "]")
# Latin letters and the signs of text are in the fonts; a test sets each of them.
_WITHOUT_FONT = re.compile("[^ -~\u00a1-\u017eγ–—‘’‚“”„†‡•…‰‹›€™]|[ĦħĸĿŀŉŦŧ]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACES = re.compile(rf"[^\S{THIN}]+")


def to_latex(value: Any) -> str:
    """Return LaTeX that prints a value's text and does nothing else, a dash for null.

    Line ends become spaces and control characters vanish, as TeX refuses them. Characters for which
    the documents have no font become their numbers, so that labels in another script differ
    and no paper fails on them; the page prints them as they are.
    """
    text = _SPACES.sub(" ", _CONTROL.sub("", shown(value))).strip(" ")
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)
    return _WITHOUT_FONT.sub(lambda match: f"[U+{ord(match[0]):04X}]", escaped)
