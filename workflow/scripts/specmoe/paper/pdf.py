"""Compiling the paper: what TeX needs, what it may touch, and what its log complains of."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from specmoe.errors import PaperError

INSTALL_TEX = (
    "on Debian or Ubuntu `apt-get install latexmk texlive-latex-recommended"
    " texlive-fonts-recommended texlive-science`, on macOS install MacTeX"
)
# Of all that the preamble loads, what small installations lack.
_PACKAGES = ("siunitx.sty", "natbib.sty", "mathpazo.sty", "microtype.sty")
# Strings of a campaign are escaped on their way into tables; should one get through all the same,
# it can run nothing, and read and write nothing outside of the folder.
_CONFINED = {"shell_escape": "f", "openin_any": "p", "openout_any": "p"}
# TeX's lines end after this many characters otherwise, in the midst of words.
_UNBROKEN_LOG = {"max_print_line": "1000"}
_SLIGHT_PT = 5.0


def missing_tex() -> list[str]:
    """Return what the paper is compiled with and this machine lacks; empty if nothing."""
    if not (shutil.which("latexmk") and shutil.which("kpsewhich")):
        return ["latexmk"]
    done = subprocess.run(["kpsewhich", *_PACKAGES], capture_output=True, text=True, check=False)
    found = {Path(line).name for line in done.stdout.splitlines()}
    return [package for package in _PACKAGES if package not in found]


def compile_pdf(document: Path, parts: Iterable[Path], out: Path, log: Path) -> list[str]:
    """Compile a document into `out` and return what TeX complains of, see `complaints`.

    `parts` are files and folders that it includes by their bare names. TeX's own log is left in
    `log`. Raises PaperError with TeX's first error, or what is to be installed.
    """
    if missing := missing_tex():
        raise PaperError(f"{out} needs {', '.join(missing)}; {INSTALL_TEX}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (document, *parts):
            if part.is_dir():
                shutil.copytree(part, folder / part.name)
            else:
                shutil.copy(part, folder)
        done = subprocess.run(
            ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", document.name],
            cwd=folder,
            env=os.environ | _CONFINED | _UNBROKEN_LOG,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        written = folder / f"{document.stem}.log"
        text = written.read_text(errors="replace") if written.is_file() else done.stdout
        log.write_text(text + done.stderr, encoding="utf-8")
        if done.returncode:
            raise PaperError(f"{document.name}: {_first_error(text)}; TeX's log is {log}")
        shutil.copy(folder / f"{document.stem}.pdf", out)
    return complaints(text)


def complaints(log: str) -> list[str]:
    """Return the lines of TeX's log that a reader would see the reason of.

    These are references and citations without an aim, labels that are there twice, and boxes that
    stand out by more than 5 pt.
    """
    lines = re.findall(r"^.*Warning: .*(?:undefined|multiply defined).*$", log, re.MULTILINE)
    wide = re.finditer(r"^Overfull \\[hv]box \(([\d.]+)pt .*$", log, re.MULTILINE)
    return lines + [box[0] for box in wide if float(box[1]) > _SLIGHT_PT]


def _first_error(log: str) -> str:
    found = re.search(r"^! (.*)$", log, re.MULTILINE)
    return found[1] if found else "did not compile"
