"""What of a campaign is there already, and what room there is for the rest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from specmoe import hub
from specmoe.block import Block
from specmoe.config import Config
from specmoe.errors import ModelError
from specmoe.estimate import BYTES_PER_TOKEN
from specmoe.files import existing, free_bytes
from specmoe.gguf_file import ModelCard, read_card
from specmoe.model_entries import HubModel, PathModel

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
    hub_folder: Folder
    models_folder: Folder
    measured_s: Mapping[str, float]  # of the blocks that are measured
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
    return Survey(
        made=made,
        cards=cards,
        cached=frozenset(files) - made,
        asked=_ask(config, frozenset(files)),
        hub_folder=_folder(hub.cache_folder()),
        models_folder=_folder(models),
        measured_s={
            block.block: seconds
            for block in blocks
            if (seconds := _measured_s(campaign / "blocks" / f"{block.block}.json")) is not None
        },
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


def _measured_s(record: Path) -> float | None:
    """Return how long the engine process of a measured block ran."""
    if not record.exists():
        return None
    data = json.loads(record.read_text(encoding="utf-8"))
    runs = sum(run["wall_ms"] for run in data["runs"]) / 1000
    return float(data["start_s"] + data["warm_up_s"] + runs)
