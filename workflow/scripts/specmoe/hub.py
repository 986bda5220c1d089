"""Models from Hugging Face."""

from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from specmoe.config import HubModel
from specmoe.errors import ModelError
from specmoe.files import sha256_of


def fetch(model: HubModel) -> Path:
    """Return the file of a model in the user's own hub cache, downloaded if it is not there.

    Raises ModelError if it cannot be had, or is not the file the config describes.
    """
    place = f"{model.repository}, revision {model.revision}, file {model.file}"
    try:
        path = Path(hf_hub_download(model.repository, model.file, revision=model.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{place}: not downloaded: {reason[0]}") from error
    _verify(model, path, place)
    return path


def _verify(model: HubModel, path: Path, place: str) -> None:
    size = path.stat().st_size
    if model.size_bytes not in (None, size):
        raise ModelError(f"{place}: {size} bytes, the config says {model.size_bytes}")
    if model.sha256 is not None and (digest := sha256_of(path)) != model.sha256:
        raise ModelError(f"{place}: SHA-256 {digest}, the config says {model.sha256}")
