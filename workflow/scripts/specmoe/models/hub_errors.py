"""Faults of the hub as one line that says what to do."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from json import JSONDecodeError
from typing import Final

import httpx2
from huggingface_hub import constants, errors

from specmoe.errors import ModelError

NO_HUB: Final = "what answers is no hub; correct HF_ENDPOINT"
_ACCOUNT: Final = "run `hf auth login` or set HF_TOKEN, as an account that may read it"
# The first match counts. No text has the client's words about a header, which may be the token.
_KNOWN: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...]] = (
    (
        errors.GatedRepoError,
        f"gated; accept its terms on {{hub}}/{{error.repo_id}}, and {_ACCOUNT}",
    ),
    (errors.RevisionNotFoundError, "the repository has no such revision; correct it"),
    (errors.RemoteEntryNotFoundError, "the repository has no such file at that revision"),
    (
        errors.RepositoryNotFoundError,
        f"{{hub}} has no such repository, or a private one; correct its name, or {_ACCOUNT}",
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
    (httpx2.TransportError, "interrupted ({error}); check the network and run again"),
    (errors.HFValidationError, "no name of a repository; correct it"),
    (JSONDecodeError, NO_HUB),
)
_BY_STATUS: Final = {
    401: _ACCOUNT,
    403: f"if it is gated, accept its terms on its page there, and {_ACCOUNT}",
    404: "it has no such thing, or is no hub; correct the names or HF_ENDPOINT",
}


@contextmanager
def one_line(place: object) -> Iterator[None]:
    """Turn an error of the hub's client into a ModelError that names the place."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ModelError(f"{place}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """Return in one line why a request to the hub failed."""
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return _reason(error.__cause__)
    # Without the name and password that the address may have.
    hub = re.sub(r"^((?:\w+://)?)[^/]*@", r"\1", constants.ENDPOINT)
    for kind, text in _KNOWN:
        if isinstance(error, kind):
            return text.format(hub=hub, cache=constants.HF_HUB_CACHE, error=error)
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "unknown"
        return f"{hub} answers {status} {phrase}; {_BY_STATUS.get(status, 'that may pass')}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {constants.HF_HUB_CACHE} is full; make room and run again"
    first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    if first.startswith("Consistency check failed"):
        return "interrupted (another number of bytes came than announced); run again"
    return first
