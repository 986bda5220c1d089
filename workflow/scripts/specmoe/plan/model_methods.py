"""How models can draft and whether they know chats, as their files say."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from specmoe.config.expand import FilesSay
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


class _Facts(NamedTuple):
    has_block: bool
    method: Method
    has_template: bool


_PLAIN = _Facts(has_block=False, method=Method.DRAFT, has_template=True)


def files_say(config: Config, models_folder: Path) -> FilesSay:
    """Return what the files of a configuration's models say of drafting and of chats.

    `models_folder` is where the workflow puts them. A file that is not here yet says nothing, and
    counts as a plain model with a chat template.
    """

    @cache
    def facts_of(model: str) -> _Facts:
        entry = config.models[model]
        match entry:
            case SyntheticModel():
                return _PLAIN._replace(
                    has_block=entry.recipe.mtp_blocks > 0,
                    has_template=entry.recipe.chat_template,
                )
            case SyntheticDraft():
                return _PLAIN._replace(method=Method(entry.method))
            case NgramCache():
                return _PLAIN._replace(method=Method.NGRAM_CACHE)
            case QuantizeModel():
                return facts_of(entry.source)
            case TruncateModel() | UpcycleModel():
                return facts_of(entry.source)._replace(has_block=False, method=Method.DRAFT)
        path = entry.path if isinstance(entry, PathModel) else models_folder / f"{model}.gguf"
        return _read(Path(path))

    return FilesSay(
        lambda model: facts_of(model).has_block,
        lambda model: facts_of(model).method,
        lambda model: facts_of(model).has_template,
    )


def _read(path: Path) -> _Facts:
    """Return what a file says; one that is missing or broken is refused where it is needed."""
    if not path.is_file():  # opening a pipe would wait for a writer
        return _PLAIN
    # Only here, because reading headers needs numpy, and most campaigns name their methods.
    from specmoe.models.drafting import drafts_by, has_mtp_block
    from specmoe.models.gguf_header import read_header

    try:
        header = read_header(path)
        method = drafts_by(header)
        has_block = has_mtp_block(header) and method == Method.DRAFT
        return _Facts(has_block, method, header.chat_template is not None)
    except (ModelError, ValueError):
        return _PLAIN
