"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake sees a script's own file at best, never what it imports. Standard library only, since
the Snakefile calls this while it builds the DAG.
"""

import ast
from functools import cache
from pathlib import Path

PACKAGE = "specmoe"


@cache
def files_of(script: Path) -> tuple[Path, ...]:
    """Return `script` and every module of the package it imports, directly or not, sorted.

    The package is the folder beside the script, or the one the script is in.
    """
    package = script.parent if script.parent.name == PACKAGE else script.parent / PACKAGE
    found: set[Path] = set()
    pending = [script]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += [package / f"{name}.py" for name in _imported(file)]
    return tuple(sorted(found))


@cache
def _imported(file: Path) -> tuple[str, ...]:
    """Return the modules named in `from specmoe.x import y` and `from specmoe import x`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == PACKAGE:
                names += [alias.name for alias in node.names]
            elif node.module.startswith(f"{PACKAGE}."):
                names.append(node.module.removeprefix(f"{PACKAGE}."))
    return tuple(names)
