"""Read a model file back, check what it is, and write it down."""

from dataclasses import replace
from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import Family
from specmoe.files import digest_of_parts
from specmoe.models.card import save_card
from specmoe.models.gguf import check_digest, check_family, describe_clock, read_card


@script
def main(
    model: Path,
    out: Path,
    digests: Path | None = None,
    sha256: tuple[str, ...] = (),
    family: str | None = None,
    origin: str = "",
    licence: str = "",
) -> None:
    digest = None
    if digests:
        lines = digests.read_text().splitlines()
        digest = digest_of_parts([line.split()[0] for line in lines])
    card = read_card(model, digest)
    if sha256:
        check_digest(card, digest_of_parts(sha256), model)
    if family:
        check_family(card, Family.model_validate_json(family), model)
    save_card(replace(card, origin=origin, licence=licence), out)
    if clock := describe_clock(model):
        print(clock)
