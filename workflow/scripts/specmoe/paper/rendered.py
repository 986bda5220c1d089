"""`paper/` holds what is rendered of one campaign at a time."""

import shutil
from pathlib import Path

# What is rendered into `paper/`, beside the sources.
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
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for part in (owner.parent / name for name in RENDERED):
            if part.is_dir():
                shutil.copytree(part, kept / part.name)
            elif part.is_file():
                shutil.copy2(part, kept / part.name)
    owner.write_text(f"{campaign}\n", encoding="utf-8")
    return kept
