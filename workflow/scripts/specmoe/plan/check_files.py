"""Whether the files that a campaign begins with can be measured, before anything is made.

The rules of models check more, but after the engine is built, and they name the workflow's links.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from specmoe.config.block import Block
from specmoe.config.methods import is_ngram
from specmoe.config.models import Family, PathModel
from specmoe.config.prompt_lines import numbered_lines
from specmoe.config.schema import Config
from specmoe.errors import ConfigError, ModelError
from specmoe.files import require_files
from specmoe.models.card import ModelCard
from specmoe.models.drafting import check_fit
from specmoe.models.gguf import check_family, check_same_vocabulary, describe_clock, read_card
from specmoe.models.gguf_header import read_header
from specmoe.plan.inventory import NOT_HASHED, card_here, made_models, model_files


class _Known(NamedTuple):
    """A model whose file is here, by the path that the user knows."""

    file: Path
    card: ModelCard


def check_files(config: Config, blocks: Iterable[Block], models: Path, root: Path) -> list[str]:
    """Make sure that prompts have text, and that the models whose files are here can be measured.

    Returns what to know about these. `models` is the folder of the model set, `root` that of the
    workflow. Raises ConfigError or ModelError with the path that the configuration has.
    """
    blocks = list(blocks)
    _check_texts(blocks, root)
    known = _read_models(config, models)
    for block in {(block.target, block.draft_model): block for block in blocks}.values():
        _check_pair(block, config, known)
    asked = {block.target: block.suite for block in blocks if block.sends_chats}
    clocks: list[str] = []
    for name, suite in asked.items():
        target = _origin(name, config, known)
        if target and not target.card.chat_template:
            raise ModelError(
                f"{target.file} has no chat template, and a workload of suite {suite} needs"
                " one; give the workload template: raw, or name a file that has one"
            )
        clocks += [describe_clock(target.file)] if target else []
    return [*filter(None, clocks)]


def _check_texts(blocks: Iterable[Block], root: Path) -> None:
    """Check the texts of prompts; a line of a workload was read with the configuration."""
    files = {source.file for block in blocks for source in block.prompts if source.line is None}
    for file in sorted(files):
        if not any(numbered_lines(root / file)):
            raise ConfigError(f"{root / file} has no text, and it is a prompt")


def _read_models(config: Config, models: Path) -> dict[str, _Known]:
    """Return the models whose files are here; the user's own must be whole."""
    known = {}
    for name, file in model_files(config, made_models(config, models), models).items():
        entry = config.models[name]
        if isinstance(entry, PathModel):
            known[name] = _read_own(Path(entry.path), config.family(name))
        elif card := card_here(file, models / f"{name}.json"):
            known[name] = _Known(file, card)
    return known


def _read_own(file: Path, family: Family | None) -> _Known:
    require_files(file)
    card = read_card(file, NOT_HASHED)
    if family:
        check_family(card, family, file)
    return _Known(file, card)


def _origin(model: str, config: Config, known: Mapping[str, _Known]) -> _Known | None:
    """Return a model, or the nearest known one that it is made from: it has its vocabulary."""
    source: str | None = model
    while source and source not in known:
        source = config.models[source].made_from
    return known[source] if source else None


def _check_pair(block: Block, config: Config, known: Mapping[str, _Known]) -> None:
    """Check that what drafts in a block has the target's vocabulary and drafts by its method."""
    if not block.draft_model:
        return
    target = _origin(block.target, config, known)
    draft = _origin(block.draft_model, config, known)
    if not target or not draft:
        return
    if target.card.vocabulary_sha256 != draft.card.vocabulary_sha256:
        check_same_vocabulary(target.file, draft.file)
    if block.draft_model in known and block.method and not is_ngram(block.method):
        ours, theirs = read_header(target.file), read_header(draft.file)
        check_fit(ours, theirs, block.method, draft.file)
