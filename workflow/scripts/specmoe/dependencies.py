"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake tracks a script's own file at best, never its imports. This module needs only the
standard library, because the Snakefile calls it while it builds the DAG.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

PACKAGE = "specmoe"
# Docstrings, comments and blank lines, which change no result; other long strings are kept.
_STRING = r'"""[^"]*(?:"(?!"")[^"]*)*"""'
_PROSE = re.compile(rf"^ *(?:r?{_STRING}|#[^\n]*)?\n| {{2}}#[^\n]*$|({_STRING})", re.MULTILINE)
# `from specmoe.a import b` imports a name from module `a`, or module `b` from room `a`. Parsing the
# modules would take most of the time of a dry run.
_IMPORT = re.compile(rf"^ *from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def files_of(script: Path) -> tuple[Path, ...]:
    """Return `script` and every module of the package it imports, directly or not, sorted.

    The package is in the script's folder, or contains the script.
    """
    # A clone may have the package's name.
    inside = [
        folder
        for folder in script.parents
        if folder.name == PACKAGE and (folder / "__init__.py").is_file()
    ]
    root = inside[0].parent if inside else script.parent
    found: set[Path] = set()
    pending = [script]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += _read(file, root)[1]
    return tuple(sorted(found))


@cache
def digest_of_modules(script: Path, without: tuple[Path, ...]) -> str:
    """Return one digest of the modules that `script` imports, directly or not.

    It changes with the code or the place of a module, and not with its comments and docstrings. The
    script itself and the modules `without` are left out.
    """
    digest = hashlib.sha256()
    for file in files_of(script):
        if file not in (script, *without):
            name = file.relative_to(script.parent).as_posix()
            digest.update(f"{name} {_read(file, script.parent)[0]}\n".encode())
    return digest.hexdigest()


def without_prose(text: str) -> str:
    """Return the text of a module without comments and docstrings."""
    return _PROSE.sub(r"\1", text)


@cache
def _read(file: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the digest of a file's code, and the files in `root` that its imports may mean."""
    text = file.read_text(encoding="utf-8")
    found = []
    for module, names in _IMPORT.findall(text):
        folder = root / module.replace(".", "/")
        found += [folder.with_suffix(".py")]
        found += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
    code = without_prose(text).encode()
    return hashlib.sha256(code).hexdigest(), tuple(filter(Path.is_file, found))
