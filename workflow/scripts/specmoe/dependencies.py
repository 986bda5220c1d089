"""Which of our files a script runs, so that an edit to one of them reruns its rule.

Snakemake tracks a script's own file at best, never its imports. This module needs only the
standard library, because the Snakefile calls it while it builds the DAG.
"""

import hashlib
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path

PACKAGE = "specmoe"
# Comments and blank lines, which change no result; together they would take twice the time.
_COMMENT = re.compile(2 * " " + r"#[^\n]*")
_EMPTY = re.compile(r"\n *(?:#[^\n]*)?(?=\n)")
_QUOTES = 3 * '"'
# `from specmoe.a import b` imports a name from module `a`, or module `b` from room `a`. Parsing the
# modules would take most of the time of a dry run.
_IMPORT = re.compile(rf"\n *from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)")


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
    # Between every other pair of quotes is a string; one that stands alone is a docstring.
    first, *parts = f"\n{text}".split(_QUOTES)
    kept = [_bare(first)]
    for string, code in zip_longest(parts[::2], parts[1::2], fillvalue=""):
        above, bare = kept[-1].rstrip(" r"), _bare(code)
        if above.endswith("\n") and code.startswith("\n"):
            kept[-1] = above
            kept.append(bare.lstrip("\n"))
        else:
            kept += [_QUOTES, string, _QUOTES, bare]
    return "".join(kept)


def _bare(code: str) -> str:
    return _EMPTY.sub("", _COMMENT.sub("", code))


@cache
def _read(file: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the digest of a file's code, and the files in `root` that its imports may mean."""
    code = without_prose(file.read_text(encoding="utf-8"))
    found = []
    for module, names in _IMPORT.findall(code):
        folder = root / module.replace(".", "/")
        found += [folder.with_suffix(".py")]
        found += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
    return hashlib.sha256(code.encode()).hexdigest(), tuple(filter(Path.is_file, found))
