"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake tracks a script's own file at best, never its imports. This module needs only the
standard library, because the Snakefile calls it while it builds the DAG.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from specmoe.files import sha256_of

PACKAGE = "specmoe"
# Read by a pattern, as a parser takes a quarter of the time in which snakemake starts.
_IMPORT = re.compile(rf"^ *from ({PACKAGE}[.\w]*) import (\([^)]*\)|.*)", re.MULTILINE)


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
            pending += _imported(file, root)
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
            digest.update(f"{name} {sha256_of(file)}\n".encode())
    return digest.hexdigest()


@cache
def _imported(file: Path, root: Path) -> tuple[Path, ...]:
    """Return the files below `root`, the package's parent, that imports of the package mean.

    `from specmoe.a import b` imports a name from module `a`, or module `b` from room `a`.
    """
    names = []
    for module, imported in _IMPORT.findall(file.read_text(encoding="utf-8")):
        folder = module.replace(".", "/")
        names += [f"{folder}.py", *(f"{folder}/{name}.py" for name in re.findall(r"\w+", imported))]
    return tuple(path for name in names if (path := root / name).is_file())
