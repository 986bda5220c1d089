"""Faults of the hub as one line that says what to do."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Final

import httpx2
from huggingface_hub import constants, errors

from specmoe.errors import ModelError

NO_HUB: Final = "what answers is no hub; correct HF_ENDPOINT"
_ACCOUNT: Final = "run `hf auth login` or set HF_TOKEN, as an account that may read it"
# The first match counts. No text has the client's words about a header, which may be the token, or
# about an address, which may be signed.
_KNOWN: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...]] = (
    (
        errors.GatedRepoError,
        f"gated; accept its terms on {{hub}}/{{error.repo_id}}, and {_ACCOUNT}",
    ),
    (errors.RevisionNotFoundError, "the repository has no such revision; correct it"),
    (
        errors.RepositoryNotFoundError,
        f"{{hub}} has no such repository, or a private one; correct its name, or {_ACCOUNT}",
    ),
    (
        errors.HfHubHTTPError,
        "{hub} answers {error.response.status_code} {error.response.reason_phrase}; try again"
        " later, or correct the names, HF_TOKEN or HF_ENDPOINT",
    ),
    (
        errors.OfflineModeIsEnabled,
        "not in the cache {cache}, and HF_HUB_OFFLINE forbids the download; unset it",
    ),
    (
        (httpx2.LocalProtocolError, UnicodeEncodeError),
        "the request has a bad header; correct HF_TOKEN",
    ),
    ((httpx2.InvalidURL, httpx2.UnsupportedProtocol), "{hub} is no address; correct HF_ENDPOINT"),
    (
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError),
        "{hub} cannot be reached ({error}); check the network, the proxy and HF_ENDPOINT",
    ),
    (
        (httpx2.TransportError, errors.XetDownloadError),
        "interrupted ({error}); the same command downloads it again",
    ),
    (JSONDecodeError, NO_HUB),
)


@contextmanager
def one_line(place: object) -> Iterator[None]:
    """Turn an error of the hub's client into a ModelError that names the place."""
    known = (httpx2.HTTPError, httpx2.InvalidURL, errors.XetDownloadError, OSError, ValueError)
    try:
        yield
    except known as error:
        raise ModelError(f"{place}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """Return in one line why a request to the hub failed."""
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    # Without the name and password that the address may have.
    hub = re.sub(r"^((?:\w+://)?)[^/]*@", r"\1", constants.ENDPOINT)
    for kind, text in _KNOWN:
        if isinstance(error, kind):
            return text.format(hub=hub, cache=constants.HF_HUB_CACHE, error=error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk of {constants.HF_HUB_CACHE} is full; make room (`hf cache prune` deletes"
            " what killed downloads left) or set HF_HOME to a folder on another disk, and run again"
        )
    if isinstance(error, OSError) and error.filename:
        return (
            f"{error.filename}: {error.strerror}; set HF_HOME to a folder that you may write to, on"
            " a disk with room"
        )
    first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    if cut := re.search(r"should be of size (\d+) but has size (\d+)", first):
        return f"interrupted: {cut[2]} of {cut[1]} bytes came; the same command downloads it again"
    return first
