"""Faults of the hub as one line that says what to do."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import httpx2
from huggingface_hub import constants, errors

from specmoe.errors import ModelError

_ACCOUNT: Final = "set HF_TOKEN to a token of that account"
# The first match counts. No text has the client's words about a header, which may be the token.
_KNOWN: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...]] = (
    (errors.GatedRepoError, f"gated; accept its terms on {{hub}}/{{error.repo_id}} and {_ACCOUNT}"),
    (errors.RevisionNotFoundError, "the repository has no such revision; correct it"),
    (
        errors.RemoteEntryNotFoundError,
        "the repository has no such file at that revision; correct it",
    ),
    (
        errors.RepositoryNotFoundError,
        "{hub} has no such repository, or a private one; correct its name, or set HF_TOKEN to a"
        " token that may read it",
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
        httpx2.ConnectError,
        "{hub} cannot be reached ({error}); check the network, the proxy and HF_ENDPOINT",
    ),
    (httpx2.TimeoutException, "{hub} does not answer in time; check the network and run again"),
    (errors.HFValidationError, "no name of a repository; correct it"),
)
_ACCESS: Final = f"if it is gated, accept its terms on its page there; {_ACCOUNT}"
_BY_STATUS: Final = {
    401: _ACCESS,
    403: _ACCESS,
    404: "it has no such thing, or is no hub; correct the names or HF_ENDPOINT",
    416: "the file there ends before the size it announces",
}


@contextmanager
def one_line(place: object) -> Iterator[None]:
    """Turn an error of the hub's client into a ModelError that names the place."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ModelError(f"{place}: {reason(error)}") from error


def shown_hub() -> str:
    """Return the hub's address without the name and password that it may have."""
    return re.sub(r"^((?:\w+://)?)[^/]*@", r"\1", constants.ENDPOINT)


def reason(error: BaseException) -> str:
    """Return in one line why a request to the hub failed."""
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return reason(error.__cause__)
    for kind, text in _KNOWN:
        if isinstance(error, kind):
            return text.format(hub=shown_hub(), cache=constants.HF_HUB_CACHE, error=error)
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "unknown"
        hint = _BY_STATUS.get(status, "that may pass")
        return f"{shown_hub()} answers {status} {phrase}; {hint}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {constants.HF_HUB_CACHE} is full; make room and run again"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
