"""What of a campaign is there already, and what room there is for the rest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from specmoe.config.block import Block
from specmoe.config.models import HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.errors import ModelError
from specmoe.files import existing, free_bytes
from specmoe.models import hub
from specmoe.models.gguf import ModelCard, read_card
from specmoe.plan.estimate import BYTES_PER_TOKEN
from specmoe.plan.progress import changed_blocks, measured_seconds

NOT_HASHED = "not hashed: only its sizes are asked"


@dataclass(frozen=True)
class Folder:
    """A folder that will be written to, and the room on its disk."""

    path: Path
    free_bytes: int
    disk: int  # the same number for folders on the same disk


@dataclass(frozen=True)
class Survey:
    """What is known before anything is done."""

    made: frozenset[str]  # models that lie where blocks look for them
    cards: Mapping[str, ModelCard]  # of all models whose files can be read now
    cached: frozenset[str]  # hub models that are in the user's cache, whole
    asked: Mapping[str, int]  # bytes of hub models, as the hub says
    absent: Mapping[str, Path]  # files that the configuration names and that are not there
    hub_folder: Folder
    models_folder: Folder
    measured_s: Mapping[str, float]  # of the blocks that are measured, as they are asked now
    changed: Mapping[str, str]  # what is changed of blocks that were measured otherwise
    prompt_tokens: Mapping[str, int]  # about how many a prompt's file holds


def survey(config: Config, blocks: list[Block], models: Path, campaign: Path, root: Path) -> Survey:
    """Look at the disk, and ask the hub for sizes that nobody here knows.

    `models` and `campaign` are the folders of the model set and of the campaign's results, `root`
    is what prompt files are relative to.
    """
    made = frozenset(name for name in config.needed_models if (models / f"{name}.gguf").exists())
    files = {name: models / f"{name}.gguf" for name in made}
    for name in set(config.needed_models) - made:
        entry = config.models[name]
        if isinstance(entry, PathModel):
            files[name] = Path(entry.path)
        elif isinstance(entry, HubModel) and (cached := hub.cached(entry)):
            files[name] = cached
    cards = {
        name: card for name, file in files.items() if (card := _card(file, models / f"{name}.json"))
    }
    records = campaign / "blocks"
    changed = changed_blocks(blocks, records)
    return Survey(
        made=made,
        cards=cards,
        cached=frozenset(files) - made,
        asked=_ask(config, frozenset(files)),
        absent=_absent(config, files),
        hub_folder=_folder(hub.cache_folder()),
        models_folder=_folder(models),
        measured_s=measured_seconds(
            (block.block for block in blocks if block.block not in changed), records
        ),
        changed=changed,
        prompt_tokens={
            source.file: (root / source.file).stat().st_size // BYTES_PER_TOKEN
            for block in blocks
            for source in block.prompts
        },
    )


def _card(file: Path, written: Path) -> ModelCard | None:
    """Return the card that was written of a model, or read it: a vocabulary takes a second."""
    try:
        known = json.loads(written.read_text()) if written.exists() else {}
        if known.keys() == {field.name for field in fields(ModelCard)}:  # else an older release's
            return ModelCard(**known)
        return read_card(file, NOT_HASHED)
    except ModelError:
        return None  # its own rule says what is wrong with it


def _absent(config: Config, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the models of files that the user has, whose files are not there."""
    return {
        name: file
        for name, file in files.items()
        if isinstance(config.models[name], PathModel) and not file.exists()
    }


def _ask(config: Config, there: frozenset[str]) -> dict[str, int]:
    asked = {}
    for name in config.needed_models:
        entry = config.models[name]
        if isinstance(entry, HubModel) and name not in there and not entry.size_bytes:
            size = hub.ask_size(entry)
            if size is not None:
                asked[name] = size
    return asked


def _folder(path: Path) -> Folder:
    return Folder(path, free_bytes(path), existing(path).stat().st_dev)
