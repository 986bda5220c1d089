"""Where llama.cpp comes from: the entries of `engines`."""

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from specmoe.config.base import COMMIT, Digest, Strict, UserPath

PackageVersion = Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.]*$")]
"""Version of a package of the Python package index."""

ID_DIGITS = 8  # at the end of an engine's id, see specmoe/engine/identity.py


def without_digits(engine_id: str) -> str:
    """Return an id's name and backend, which identify an engine within one campaign."""
    return re.sub(rf"-[0-9a-f]{{{ID_DIGITS}}}$", "", engine_id)


class EngineBuild(Strict):
    """An engine that is built from source."""

    commit: str = Field(pattern=COMMIT)
    """commit of llama.cpp; of a git repository it is checked"""
    cmake: dict[str, str] = Field(default={})
    """CMake definitions, all strings"""
    fallbacks: list[dict[str, str]] = Field(default=[])
    """definitions to add to `cmake`, tried in turn when the finished engine fails its self-test"""


class PypiEngine(EngineBuild):
    """The llama.cpp in a source distribution of llama-cpp-python."""

    source: Literal["pypi"]
    version: PackageVersion
    """version of llama-cpp-python"""
    sha256: Digest
    """SHA-256 of the source distribution"""


class GitEngine(EngineBuild):
    """A tag of a git repository; specmoe checks its commit."""

    source: Literal["git"]
    url: str
    """the repository"""
    tag: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
    """tag to check out"""


class PathEngine(Strict):
    """Binaries that you already have."""

    source: Literal["path"]
    path: UserPath
    """folder of `llama-server`, `llama-quantize` and `llama-bench` (for protocol `published` also
    `llama-speculative`, for models of kind `ngram_cache` also `llama-lookup-create`), with the
    shared libraries they load, if any"""
    commit: str = "unknown"
    """commit of llama.cpp, as rows record it"""


Engine = Annotated[PypiEngine | GitEngine | PathEngine, Field(discriminator="source")]
