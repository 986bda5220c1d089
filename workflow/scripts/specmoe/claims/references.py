"""The paper's bibliography, as far as a table names its works."""

import re
from collections.abc import Mapping
from pathlib import Path

from specmoe.errors import ConfigError

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*(?:\{(.*)\}|(\w+)),?$", re.MULTILINE)
_TWO = 2


def read_references(path: Path) -> dict[str, str]:
    """Return the works of a BibTeX file by key, as a text names them: `Cai et al. 2024`.

    Entries have one field a line, as in `paper/references.bib`. Raises ConfigError for an entry
    without author or year.
    """
    works = {}
    for key, body in _ENTRY.findall(path.read_text(encoding="utf-8")):
        fields = {name: braced or bare for name, braced, bare in _FIELD.findall(body)}
        for needed in ("author", "year"):
            if needed not in fields:
                raise ConfigError(f"{path}: {key} has no {needed}")
        works[key] = _cited(fields)
    return works


def _cited(fields: Mapping[str, str]) -> str:
    names = [_surname(author) for author in fields["author"].split(" and ")]
    if len(names) > _TWO:
        names = [f"{names[0]} et al."]
    return f"{' and '.join(names)} {fields['year']}"


def _surname(author: str) -> str:
    """Return an author's surname, or the whole name of an organisation, which stands in braces."""
    name = author if author.startswith("{") else author.split(",")[0]
    return re.sub(r"[{}]", "", name).strip()
