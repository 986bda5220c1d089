"""HTML from templates: what a template prints is escaped, and numbers read as in the paper."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from specmoe.paper import latex

DASH = "–"
"""What stands for a value that was not measured."""

# What `latex` writes in numbers, as text.
_SIGNS = {
    "$-$": "−",
    r"$\pm$": "±",
    r"$\infty$": "∞",
    r"\,": "\N{NARROW NO-BREAK SPACE}",
    latex.NULL: DASH,
}


def plain(value: Any) -> str:
    """Return the text of any value: of `latex`'s numbers without LaTeX, a dash of null."""
    if isinstance(value, latex.Raw):
        text = str(value)
        for written, sign in _SIGNS.items():
            text = text.replace(written, sign)
        return text
    # Asked first, because an undefined template variable must raise and not count as null.
    text = str(value)
    return DASH if pd.isna(value) else text


def digest(text: str) -> str:
    """Return the name by which a content security policy allows this inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def environment(templates: Path) -> jinja2.Environment:
    """Return the template environment of a folder of HTML; an undefined name is an error."""
    env = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else plain(value),
        loader=jinja2.FileSystemLoader(templates),
    )
    numbers = (latex.fixed, latex.percent, latex.thousands, latex.parameters, latex.interval)
    env.filters.update({function.__name__: function for function in numbers})
    env.filters |= {"digest": digest, "plain": plain}
    return env
