"""Put the cards of several models into one file."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.models.card import load_card, save_cards


@script
def main(cards: tuple[Path, ...], out: Path) -> None:
    save_cards({path.stem: load_card(path) for path in cards}, out)
