"""Models from Hugging Face."""

from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from specmoe.config import HubModel
from specmoe.errors import ModelError


def fetch(model: HubModel) -> Path:
    """Return the file of a model in the user's own hub cache, downloaded if it is not there."""
    place = f"{model.repository}, revision {model.revision}, file {model.file}"
    try:
        return Path(hf_hub_download(model.repository, model.file, revision=model.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{place}: not downloaded: {reason}") from error
