"""Models from Hugging Face, downloaded by its client to the user's hub cache, and verified.

The client continues where a connection ends, but not where a process was killed. It checks digests
only of Xet's pieces, so each file is hashed here. An error is one line that says what to do.
"""

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

# The hub's client reads them when it is imported. Its warnings have addresses, which may be signed.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_VERBOSITY", "error")

import httpx2
from huggingface_hub import constants, errors, hf_hub_download, model_info, try_to_load_from_cache

from specmoe.config.base import resource
from specmoe.config.models import HubModel
from specmoe.errors import ModelError, ended_if_slow
from specmoe.files import file_digests, gigabytes, link, seen_of_model, sha256_of

_OF_NETWORK: Final = (httpx2.HTTPError, httpx2.InvalidURL, errors.XetDownloadError)
_OF_CLIENT: Final = (*_OF_NETWORK, OSError, ValueError)

CACHE: Final = Path(constants.HF_HUB_CACHE)
"""The user's hub cache."""

_logger = logging.getLogger(__name__)


def fetch_from_hub(model: HubModel, out: Path) -> None:
    """Make `out` a link to a verified model, downloaded unless it is cached; keep its digests.

    A part must have the digests of the hub and of the config. Raises ModelError if it cannot be
    downloaded or has another digest.
    """
    # All are there before the first is downloaded.
    parts = [_asked(model, name, hf_hub_download, dry_run=True) for name in model.files]
    missing = sum(part.file_size or 0 for part in parts if part.will_download)
    if missing:
        first = _place(model, model.file)
        _logger.info("%s: %s to download into %s", first, gigabytes(missing), CACHE)
    hashed: dict[Path, str] = {}
    for name, stated in zip(model.files, model.digests, strict=True):
        place = _place(model, name)
        with ended_if_slow(place, missing):
            # By the revision's name, so that the cache knows its commit when there is no network.
            path = Path(_asked(model, name, hf_hub_download))
        hashed[path] = sha256_of(path)
        # The cache names a file by the digest that the hub announced.
        announced = path.readlink().name if path.is_symlink() else ""
        if re.fullmatch(r"[0-9a-f]{64}", announced) and hashed[path] != announced:
            path.resolve().unlink()
            path.unlink()  # the link to it
            raise ModelError(
                f"{place}: damaged: SHA-256 {hashed[path]}, not {announced}; it is deleted, run"
                " again to download it"
            )
        if stated and hashed[path] != stated:
            raise ModelError(
                f"{place}: another file: the config says SHA-256 {stated}, it has {hashed[path]};"
                " correct the one, or the revision"
            )
        if not stated:
            _logger.info("%s: the config has no sha256; give it %s", place, hashed[path])
    link(next(iter(hashed)), out)
    file_digests(hashed, seen_of_model(out), hashed)  # so it is not hashed again


def cached(model: HubModel) -> Path | None:
    """Return the first part of a model if all parts are cached; the hub is not asked."""
    paths = [_asked(model, name, try_to_load_from_cache) for name in model.files]
    return Path(paths[0]) if all(isinstance(path, str) for path in paths) else None


def ask_size(model: HubModel) -> int | None:
    """Return the bytes of all parts of a model, from the hub; None, and say why, if unknown."""
    seconds = constants.HF_HUB_ETAG_TIMEOUT
    try:
        info = model_info(
            model.repository, revision=model.revision, files_metadata=True, timeout=seconds
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        return sum(sizes[name] for name in model.files)
    except _OF_CLIENT as error:
        reason = _reason(error)
    except KeyError:
        reason = resource("download_errors")["hub"]["RemoteEntryNotFoundError"]
    _logger.info("%s: %s", _place(model, model.file), reason)
    return None


def _place(model: HubModel, name: str) -> str:
    return f"{model.repository}, revision {model.revision}, file {name}"


def _asked(model: HubModel, name: str, ask: Callable[..., Any], **how: Any) -> Any:
    """Ask the hub's client for a file; its error is a ModelError with the place and what to do."""
    try:
        return ask(model.repository, name, revision=model.revision, **how)
    except _OF_CLIENT as error:
        raise ModelError(f"{_place(model, name)}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    # Without the name and password that the address may have.
    hub = re.sub(r"^((?:\w+://)?)[^/]*@", r"\1", constants.ENDPOINT)
    kind = type(error).__name__
    kinds = {base.__name__ for base in type(error).__mro__}
    for known, text in resource("download_errors")["hub"].items():
        if known in kinds:
            return str(text).format(hub=hub, cache=CACHE, kind=kind, error=error)
    if isinstance(error, OSError) and error.errno:
        return (
            f"{error.filename or CACHE}: {error.strerror}; make room (`hf cache prune` deletes what"
            " killed downloads left), or set HF_HOME to a folder that you may write to"
        )
    first = re.split(r"\s*\n|\. | \(", str(error).strip())[0] or kind
    return f"{first.rstrip('.')}; the same command downloads it again"
