"""How models can draft, as their files say."""

from functools import cache
from pathlib import Path

from specmoe.config.expand import FileFacts, FilesSay
from specmoe.config.methods import Method
from specmoe.config.models import (
    NgramCache,
    PathModel,
    QuantizeModel,
    SyntheticDraft,
    SyntheticModel,
    TruncateModel,
    UpcycleModel,
)
from specmoe.config.schema import Config
from specmoe.errors import ModelError


def files_say(config: Config, models_folder: Path) -> FilesSay:
    """Return what the files of a configuration's models say of drafting.

    `models_folder` is where the workflow puts them. A file that is not here yet says nothing, and
    counts as a plain model.
    """

    @cache
    def facts_of(model: str) -> FileFacts:
        entry = config.models[model]
        match entry:
            case SyntheticModel():
                return FileFacts(entry.recipe.mtp_blocks > 0)
            case SyntheticDraft():
                return FileFacts(method=Method(entry.method))
            case NgramCache():
                return FileFacts(method=Method.NGRAM_CACHE)
            case QuantizeModel():
                return facts_of(entry.source)
            case TruncateModel() | UpcycleModel():
                return facts_of(entry.source)._replace(has_block=False, method=Method.DRAFT)
        path = entry.path if isinstance(entry, PathModel) else models_folder / f"{model}.gguf"
        return _read(Path(path))

    return facts_of


def _read(path: Path) -> FileFacts:
    """Return what a file says; one that is missing or broken is refused where it is needed."""
    if not path.is_file():  # opening a pipe would wait for a writer
        return FileFacts()
    # Only here, because reading headers needs numpy, and most campaigns name their methods.
    from specmoe.models.drafting import drafts_by, has_mtp_block
    from specmoe.models.gguf_header import read_header

    try:
        header = read_header(path)
        method = drafts_by(header)
        has_block = has_mtp_block(header) and method == Method.DRAFT
        return FileFacts(has_block, method)
    except (ModelError, ValueError):
        return FileFacts()
