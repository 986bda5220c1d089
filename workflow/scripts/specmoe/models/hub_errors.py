"""What went wrong with the hub, in one line that says what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from httpx2 import (
    ConnectError,
    HTTPError,
    InvalidURL,
    LocalProtocolError,
    TimeoutException,
    UnsupportedProtocol,
)
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from specmoe.errors import ModelError

_ACCOUNT: Final = "set HF_TOKEN to a token of that account"
# The first that fits. No text holds what the client says of a header: that may be the token.
_KNOWN: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...]] = (
    (GatedRepoError, f"gated; accept its terms on {{hub}}/{{error.repo_id}} and {_ACCOUNT}"),
    (RevisionNotFoundError, "the repository has no such revision; correct it"),
    (RemoteEntryNotFoundError, "the repository has no such file at that revision; correct it"),
    (
        RepositoryNotFoundError,
        "{hub} has no such repository, or a private one; correct its name, or set HF_TOKEN to a"
        " token that may read it",
    ),
    (
        OfflineModeIsEnabled,
        "not in the cache {cache}, and HF_HUB_OFFLINE forbids to download it; unset that",
    ),
    ((LocalProtocolError, UnicodeEncodeError), "the request has a bad header; correct HF_TOKEN"),
    ((InvalidURL, UnsupportedProtocol), "{hub} is no address; correct HF_ENDPOINT"),
    (
        ConnectError,
        "{hub} cannot be reached ({error}); check the network, the proxy and HF_ENDPOINT",
    ),
    (TimeoutException, "{hub} does not answer in time; check the network and run again"),
    (HFValidationError, "no name of a repository; correct it"),
)
_ACCESS: Final = f"if it is gated, accept its terms on its page there; {_ACCOUNT}"
_LATER: Final = "that may pass"
_BY_STATUS: Final = {
    401: _ACCESS,
    403: _ACCESS,
    404: "what is asked for is not there, or this is no hub; correct the names or HF_ENDPOINT",
    416: "the file there ends before the size it announces",
}


@contextmanager
def one_line(place: object) -> Iterator[None]:
    """Turn what the hub's client raises into a ModelError that names the place."""
    try:
        yield
    except (HTTPError, InvalidURL, OSError, ValueError) as error:
        raise ModelError(f"{place}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return in one line why the hub did not give what was asked of it."""
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        return reason(error.__cause__)
    for kind, text in _KNOWN:
        if isinstance(error, kind):
            return text.format(hub=constants.ENDPOINT, cache=constants.HF_HUB_CACHE, error=error)
    if isinstance(error, HfHubHTTPError):
        return _answer(error.response.status_code)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {constants.HF_HUB_CACHE} is full; make room and run again"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def _answer(status: int) -> str:
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "unknown"
    return f"{constants.ENDPOINT} answers {status} {phrase}; {_BY_STATUS.get(status, _LATER)}"
