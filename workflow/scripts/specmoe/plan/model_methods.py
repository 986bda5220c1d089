"""How models can draft, as their files say."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from specmoe.config.all_methods import FilesSay
from specmoe.config.methods import Method
from specmoe.config.models import (
    NgramCache,
    PathModel,
    QuantizeModel,
    SyntheticDraft,
    SyntheticModel,
    TruncateModel,
)
from specmoe.config.schema import Config
from specmoe.errors import ModelError

_BY_ARCHITECTURE = {"eagle3": Method.EAGLE3, "dflash": Method.DFLASH}
# llama.cpp tells the two block drafters apart by this tensor (common/speculative.cpp).
_MARKOV_HEAD = "markov_w1.weight"
# A whole model has layers before the block that predicts further tokens; a file beside it has not.
_FIRST_LAYER = "blk.0."


class _Facts(NamedTuple):
    has_block: bool
    method: Method


_PLAIN = _Facts(has_block=False, method=Method.DRAFT)


def files_say(config: Config, models_folder: Path) -> FilesSay:
    """Return what the files of a configuration's models say of drafting.

    `models_folder` is where the workflow puts them. A file that is not here yet says nothing, and
    counts as that of a plain model.
    """

    @cache
    def facts_of(model: str) -> _Facts:
        entry = config.models[model]
        if isinstance(entry, SyntheticModel):
            return _Facts(has_block=entry.recipe.mtp_blocks > 0, method=Method.DRAFT)
        if isinstance(entry, SyntheticDraft):
            return _PLAIN._replace(method=Method(entry.method))
        if isinstance(entry, NgramCache):
            return _PLAIN._replace(method=Method.NGRAM_CACHE)
        if isinstance(entry, QuantizeModel):
            return facts_of(entry.source)
        if isinstance(entry, TruncateModel):
            return _PLAIN
        path = entry.path if isinstance(entry, PathModel) else models_folder / f"{model}.gguf"
        return _read(Path(path))

    return FilesSay(lambda model: facts_of(model).has_block, lambda model: facts_of(model).method)


def _read(path: Path) -> _Facts:
    """Return what a file says; one that is missing or broken is refused where it is needed."""
    # Only here, because parsing needs numpy.
    from specmoe.models.gguf_header import read_header

    try:
        header = read_header(path)
        architecture = header.text("general.architecture")
    except (ModelError, ValueError):
        return _PLAIN
    names = {tensor.name for tensor in header.tensors}
    if architecture in _BY_ARCHITECTURE:
        marked = _MARKOV_HEAD in names
        return _PLAIN._replace(method=Method.DSPARK if marked else _BY_ARCHITECTURE[architecture])
    has_block = header.number(f"{architecture}.nextn_predict_layers", 0) > 0
    whole = any(name.startswith(_FIRST_LAYER) for name in names)
    return _Facts(has_block and whole, Method.DRAFT if whole else Method.MTP)
