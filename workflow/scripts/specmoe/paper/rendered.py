"""Whose paper lies in `paper/`: one campaign's at a time."""

import shutil
from pathlib import Path

# What is rendered into `paper/`, beside the sources that lie there.
RENDERED = ("tables", "figures", "macros.tex", "main.pdf", "supplement.pdf")


def claim(owner: Path, campaign: str, results: Path) -> Path | None:
    """Write into the file `owner` that its folder holds what is rendered of `campaign`.

    If it held another campaign's, that is copied to `<results>/<that campaign>/paper`, and this
    folder is returned.
    """
    before = owner.read_text(encoding="utf-8").strip() if owner.exists() else campaign
    kept = None
    if before != campaign and (results / before).is_dir():
        kept = results / before / "paper"
        _copy(owner.parent, kept)
    owner.write_text(f"{campaign}\n", encoding="utf-8")
    return kept


def _copy(paper: Path, kept: Path) -> None:
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for name in RENDERED:
        part = paper / name
        if part.is_dir():
            shutil.copytree(part, kept / name)
        elif part.is_file():
            shutil.copy2(part, kept / name)
