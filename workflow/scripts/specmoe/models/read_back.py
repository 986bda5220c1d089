"""A model's file read back, checked, and described by its card."""

from dataclasses import dataclass, replace
from pathlib import Path

from specmoe.config.models import Family
from specmoe.file_states import file_digests
from specmoe.files import digest_of_parts, files_of_model, seen_of_model
from specmoe.models.card import save_card
from specmoe.models.gguf import check_digest, check_family, describe_clock, read_card


@dataclass(frozen=True)
class Stated:
    """What the configuration says of a model's file."""

    sha256: tuple[str, ...] = ()  # of its parts
    family: Family | None = None
    origin: str = ""
    licence: str = ""


def describe_model(model: Path, stated: Stated, digests: Path | None, out: Path) -> str:
    """Write the card of a model; return what is to be said of its clock, or nothing.

    `digests` has those of a download, which was hashed then. Raises ModelError for a file that is
    not what is stated.
    """
    parts = files_of_model(model)
    lines = digests.read_text().splitlines() if digests else []
    known = {part.name: line.split()[0] for part, line in zip(parts, lines, strict=False)}
    hashed = file_digests(parts, seen_of_model(model), known)
    card = read_card(model, digest_of_parts([*hashed.values()]))
    if stated.sha256:
        check_digest(card, digest_of_parts(stated.sha256), model)
    if stated.family:
        check_family(card, stated.family, model)
    save_card(replace(card, origin=stated.origin, licence=stated.licence), out)
    return describe_clock(model)
