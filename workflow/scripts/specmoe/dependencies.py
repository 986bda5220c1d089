"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake tracks a script's own file at best, never its imports. This module needs only the
standard library, because the Snakefile calls it while it builds the DAG.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from specmoe.files import sha256_of

PACKAGE = "specmoe"


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
            pending += [root / name for name in _imported(file) if (root / name).is_file()]
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
def _imported(file: Path) -> tuple[str, ...]:
    """Return the files that imports of the package may mean, relative to the package's parent.

    `from specmoe.a import b` imports a name from module `a`, or module `b` from room `a`.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            folder = str(node.module).replace(".", "/")
            names += [f"{folder}.py", *(f"{folder}/{alias.name}.py" for alias in node.names)]
    return tuple(names)
