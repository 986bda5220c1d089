"""Models from Hugging Face, downloaded by its client to the user's hub cache, and verified.

The client continues where a connection ends, but not where a process was killed. It checks digests
only of Xet's pieces, so each file is hashed here. An error is one line that says what to do.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

# The hub's client reads them when it is imported. Its warnings have addresses, which may be signed.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_VERBOSITY", "error")

import httpx2
from huggingface_hub import constants, errors, hf_hub_download, model_info, try_to_load_from_cache

from specmoe.config.models import HubModel
from specmoe.errors import ModelError
from specmoe.files import gigabytes, link, replace_text, sha256_of

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

_NO_HUB: Final = "what answers is no hub; correct HF_ENDPOINT"
_ACCOUNT: Final = "run `hf auth login` or set HF_TOKEN, as an account that may read it"
# The first match counts. No text has the client's words about a header, which may be the token, or
# about an address, which may be signed.
_KNOWN: Final[dict[Any, str]] = {
    errors.GatedRepoError: "gated; accept its terms on {hub}/{error.repo_id}, and " + _ACCOUNT,
    errors.RevisionNotFoundError: "the repository has no such revision; correct it",
    errors.RepositoryNotFoundError: "{hub} has no such repository, or a private one; correct its"
    f" name, or {_ACCOUNT}",
    errors.HfHubHTTPError: "{hub} answers {error.response.status_code}"
    " {error.response.reason_phrase}; try again later, or correct the names, HF_TOKEN or"
    " HF_ENDPOINT",
    errors.OfflineModeIsEnabled: "not in the cache {cache}, and HF_HUB_OFFLINE forbids the"
    " download; unset it",
    (httpx2.HTTPError, httpx2.InvalidURL, errors.XetDownloadError, UnicodeEncodeError): "{hub}"
    " cannot be asked, or broke off ({kind}); check the network, the proxy, HF_ENDPOINT and"
    " HF_TOKEN; the same command downloads it again",
    json.JSONDecodeError: _NO_HUB,
}


_logger = logging.getLogger(__name__)


class _Part(NamedTuple):
    """What is known of a model's file before its download."""

    size: int  # bytes
    announced: str | None  # the SHA-256 that the hub has
    cached: bool


def fetch(model: HubModel, out: Path, digests: Path) -> None:
    """Make `out` a link to a verified model, downloaded unless it is cached; write its `digests`.

    A part must have the digest of the config, else of the hub. Raises ModelError if it cannot be
    downloaded or has another digest.
    """
    parts, places = _located(model), [_place(model, name) for name in model.files]
    for place, part, stated in zip(places, parts, model.digests, strict=True):
        if stated and part.announced not in (None, stated):
            raise ModelError(
                f"{place}: another file: the config says SHA-256 {stated}, the hub announces"
                f" {part.announced}; correct the one, or the revision"
            )
    if missing := sum(part.size for part in parts if not part.cached):
        _logger.info("%s: %s to download into %s", places[0], gigabytes(missing), cache_folder())
    hashed: dict[Path, str] = {}
    for name, place, part, stated in zip(model.files, places, parts, model.digests, strict=True):
        with _one_line(place):
            # By the revision's name, so that the cache knows its commit when there is no network.
            path = Path(hf_hub_download(model.repository, name, revision=model.revision))
        hashed[path] = sha256_of(path)
        if hashed[path] != (expected := stated or part.announced or hashed[path]):
            path.resolve().unlink()
            path.unlink(missing_ok=True)  # the link to it
            raise ModelError(
                f"{place}: damaged: SHA-256 {hashed[path]}, not {expected}; it is deleted, run"
                " again to download it"
            )
        if not stated:
            _logger.info("%s: the config has no sha256; give it %s", place, hashed[path])
    named = zip(hashed.values(), link(next(iter(hashed)), out), strict=True)
    replace_text(digests, "".join(f"{sha256}  {one.name}\n" for sha256, one in named))


def cached(model: HubModel) -> Path | None:
    """Return the first part of a model if all parts are cached; the hub is not asked."""
    paths = [_cached(model, name, model.revision) for name in model.files]
    return paths[0] if all(paths) else None


def ask_size(model: HubModel) -> int | None:
    """Return the size of all parts of a model in bytes, from the hub; None if it is unknown."""
    try:
        return sum(part.size for part in _listed(model))
    except ModelError:
        return None


def cache_folder() -> Path:
    """Return the user's hub cache."""
    return Path(constants.HF_HUB_CACHE)


def _place(model: HubModel, name: str) -> str:
    return f"{model.repository}, revision {model.revision}, file {name}"


def _cached(model: HubModel, name: str, revision: str) -> Path | None:
    with _one_line(_place(model, name)):
        found = try_to_load_from_cache(model.repository, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _located(model: HubModel) -> list[_Part]:
    """Return what is known of a model's files, from the cache (of a commit) or from the hub.

    If the hub cannot be reached, the cached files of the revision are taken.
    """
    paths = [_cached(model, name, model.revision) for name in model.files]
    here = [_Part(path.stat().st_size, _announced(path), cached=True) for path in paths if path]
    if len(here) == len(paths) and _COMMIT.fullmatch(model.revision):
        return here
    try:
        return _listed(model)
    except ModelError as error:
        if len(here) < len(paths):
            raise
        _logger.info("%s; taking the cached file of that revision", error)
        return here


def _announced(path: Path) -> str | None:
    """Return the digest that the hub announced of a cached file, by which the cache names it."""
    blob = path.readlink().name if path.is_symlink() else ""
    return blob if _SHA256.fullmatch(blob) else None


def _listed(model: HubModel) -> list[_Part]:
    """Return a model's files as the hub lists them, all of one commit. Raises ModelError."""
    with _one_line(_place(model, model.file)):
        info = model_info(
            model.repository,
            revision=model.revision,
            files_metadata=True,
            timeout=constants.HF_HUB_ETAG_TIMEOUT,
        )
    listed = {file.rfilename: file for file in info.siblings or []}
    parts = []
    for name in model.files:
        file = listed.get(name)
        if file is None:
            similar = ", ".join(get_close_matches(name, listed)) or "none"
            raise ModelError(
                f"{_place(model, name)}: the repository has no such file at that revision; correct"
                f" it (similar: {similar})"
            )
        if not info.sha or file.size is None:
            raise ModelError(f"{_place(model, name)}: {_NO_HUB}")
        sha256, here = file.lfs.sha256 if file.lfs else None, _cached(model, name, info.sha)
        parts.append(_Part(file.size, sha256, cached=here is not None))
    return parts


@contextmanager
def _one_line(place: str) -> Iterator[None]:
    """Turn an error of the hub's client into a ModelError that names the place, and what to do."""
    known = (httpx2.HTTPError, httpx2.InvalidURL, errors.XetDownloadError, OSError, ValueError)
    try:
        yield
    except known as error:
        raise ModelError(f"{place}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    # Without the name and password that the address may have.
    hub = re.sub(r"^((?:\w+://)?)[^/]*@", r"\1", constants.ENDPOINT)
    cache, kind = constants.HF_HUB_CACHE, type(error).__name__
    for known, text in _KNOWN.items():
        if isinstance(error, known):
            return text.format(hub=hub, cache=cache, kind=kind, error=error)
    if isinstance(error, OSError) and error.errno:
        return (
            f"{error.filename or cache}: {error.strerror}; make room (`hf cache prune` deletes what"
            " killed downloads left), or set HF_HOME to a folder that you may write to"
        )
    first = re.split(r"\s*\n|\. | \(", str(error).strip())[0] or kind
    return f"{first.rstrip('.')}; the same command downloads it again"
