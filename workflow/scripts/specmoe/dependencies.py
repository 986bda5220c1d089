"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake tracks a script's own file at best, never its imports. This module needs only the
standard library, because the Snakefile calls it while it builds the DAG.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

PACKAGE = "specmoe"
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

    It changes with the text or the place of a module. The script itself and the modules `without`
    are left out.
    """
    digest = hashlib.sha256()
    for file in files_of(script):
        if file not in (script, *without):
            name = file.relative_to(script.parent).as_posix()
            digest.update(f"{name} {_read(file, script.parent)[0]}\n".encode())
    return digest.hexdigest()


@cache
def _read(file: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """Return a file's digest, and the files of the package in `root` that its imports may mean."""
    text = file.read_bytes()
    found = []
    for module, names in _IMPORT.findall(text.decode()):
        folder = root / module.replace(".", "/")
        found += [folder.with_suffix(".py")]
        found += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
    return hashlib.sha256(text).hexdigest(), tuple(filter(Path.is_file, found))
