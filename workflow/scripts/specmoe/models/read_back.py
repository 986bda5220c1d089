"""A model's file read back, checked, and described by its card."""

from dataclasses import dataclass, replace
from pathlib import Path

from specmoe.config.models import Family
from specmoe.files import digest_of_parts
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
    digest = None
    if digests:
        lines = digests.read_text().splitlines()
        digest = digest_of_parts([line.split()[0] for line in lines])
    card = read_card(model, digest)
    if stated.sha256:
        check_digest(card, digest_of_parts(stated.sha256), model)
    if stated.family:
        check_family(card, stated.family, model)
    save_card(replace(card, origin=stated.origin, licence=stated.licence), out)
    return describe_clock(model)
