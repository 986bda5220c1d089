"""HTML from templates: what a template prints is escaped, and null is a dash."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import jinja2
from markupsafe import Markup

from specmoe.analysis import number_text
from specmoe.analysis.compared_prompts import prompt_words
from specmoe.words import counted, later


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
        finalize=lambda value: value if isinstance(value, Markup) else number_text.shown(value),
        loader=jinja2.FileSystemLoader(templates),
    )
    formats = (
        number_text.fixed,
        number_text.percent,
        number_text.thousands,
        number_text.parameters,
        number_text.interval,
        counted,
        later,
        prompt_words,
    )
    env.filters.update({function.__name__: function for function in (*formats, digest)})
    return env
