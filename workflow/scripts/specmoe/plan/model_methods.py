"""How a model's file can draft, read from the file where it is, or else from its card."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from specmoe.config.all_methods import FilesSay
from specmoe.config.methods import Method
from specmoe.config.schema import Config

_BY_ARCHITECTURE = {"eagle3": Method.EAGLE3, "dflash": Method.DFLASH}
# llama.cpp, common/speculative.cpp, tells these apart by the same tensors.
_MARKOV_HEAD = "markov_w1.weight"
_BLOCK_OF_ITS_OWN = "token_embd.weight"


def read_files(config: Config, results: Path) -> FilesSay:
    """Return what the files of a configuration's models say, as far as they are here.

    `results` is the folder of all campaigns' results. A file that is not here yet, or not readable,
    says nothing: it counts as a plain model. Measuring refuses what cannot draft as it was told.
    """

    @cache
    def header_of(model: str) -> "Mapping[str, object] | None":
        return _facts(_file_of(config, model, results))

    def has_block(model: str) -> bool:
        facts = header_of(model)
        return facts is not None and bool(facts["blocks"])

    def method_of(model: str) -> Method:
        facts = header_of(model)
        return Method.DRAFT if facts is None else Method(str(facts["method"]))

    return FilesSay(has_block, method_of)
