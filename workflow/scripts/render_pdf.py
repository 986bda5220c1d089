"""Compile a document of the paper, as it ships, with what was rendered for it."""

import sys
from pathlib import Path

from specmoe.command_line import script
from specmoe.paper.pdf import compile_pdf


@script
def main(document: Path, parts: tuple[Path, ...], log: Path, out: Path) -> None:
    for complaint in compile_pdf(document, parts, out, log):
        print(f"{document.name}: {complaint}", file=sys.stderr)
