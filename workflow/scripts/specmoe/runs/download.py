"""Get a small file from the web or the disk, and check its digest."""

import hashlib
from pathlib import Path

import httpx

from specmoe.config.schema import Published
from specmoe.errors import DownloadError
from specmoe.files import read_whole

LIMIT_S = 60


def download(source: str, sha256: str, out: Path) -> None:
    """Write the file at `source`, an address or a path, to `out`, if it has this SHA-256.

    Raises DownloadError, and writes nothing, if the file cannot be read or is another one.
    """
    try:
        if source.startswith(("http://", "https://")):
            answer = httpx.get(source, follow_redirects=True, timeout=LIMIT_S)
            content = answer.raise_for_status().content
        else:
            content = read_whole(Path(source))
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DownloadError(
            f"{source}: cannot be read ({reason}); check the network, or set published.file to the"
            " path of a copy"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DownloadError(f"{source}: SHA-256 {digest}, the config says {sha256}; not used")
    out.write_bytes(content)


def fetch_published(published: Published, out: Path) -> None:
    """Get the published study's rows: download them, or take the user's copy."""
    address = f"https://github.com/{published.repository}/raw/{published.commit}/{published.path}"
    download(published.file or address, published.sha256, out)
