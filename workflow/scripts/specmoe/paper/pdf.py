"""Compile the paper with TeX, confined to its folder."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from specmoe.errors import PaperError

INSTALL_TEX = (
    "on Debian or Ubuntu `apt-get install latexmk texlive-latex-recommended"
    " texlive-fonts-recommended`, on macOS install MacTeX"
)
# Packages of the preamble that small installations lack.
_PACKAGES = ("natbib.sty", "mathpazo.sty", "microtype.sty")
# Tables escape a campaign's strings. Should one get through, TeX runs no command, and reads and
# writes nothing outside of its folder.
_CONFINED = {"shell_escape": "f", "openin_any": "p", "openout_any": "p"}
# By default TeX breaks the lines of its log inside words.
_UNBROKEN_LOG = {"max_print_line": "1000"}


def missing_tex() -> list[str]:
    """Return the TeX programs and packages that this machine lacks to compile the paper."""
    if not (shutil.which("latexmk") and shutil.which("kpsewhich")):
        return ["latexmk"]
    done = subprocess.run(["kpsewhich", *_PACKAGES], capture_output=True, text=True, check=False)
    installed = {Path(line).name for line in done.stdout.splitlines()}
    return [package for package in _PACKAGES if package not in installed]


def render_pdf(document: Path, parts: tuple[Path, ...], log: Path, out: Path) -> None:
    """Compile a document of the paper, as it ships, with what was rendered for it.

    `parts` are files and folders that it includes by their bare names. `log` gets TeX's own log.
    Raises PaperError with TeX's first error, or with what to install.
    """
    if missing := missing_tex():
        raise PaperError(f"{out} needs {', '.join(missing)}; {INSTALL_TEX}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (document, *parts):
            copy = shutil.copytree if part.is_dir() else shutil.copy
            copy(part, folder / part.name)
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
            match = re.search(r"^! (.*)$", text, re.MULTILINE)
            reason = match[1] if match else "did not compile"
            raise PaperError(f"{document.name}: {reason}; TeX's log is {log}")
        shutil.copy(folder / f"{document.stem}.pdf", out)
