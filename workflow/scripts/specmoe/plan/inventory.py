"""What a campaign has already, and how much room there is for the rest."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specmoe.config.block import Block
from specmoe.config.models import HubModel, PathModel
from specmoe.config.prompt_lines import numbered_lines
from specmoe.config.schema import Config
from specmoe.errors import ModelError
from specmoe.files import existing, free_bytes
from specmoe.models import hub
from specmoe.models.card import ModelCard, load_card
from specmoe.models.gguf import read_card
from specmoe.models.hub import cache_folder
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.door import remade_models
from specmoe.plan.estimate import BYTES_PER_TOKEN
from specmoe.plan.gate import Gate

NOT_HASHED = "not hashed: the plan needs sizes only"


@dataclass(frozen=True)
class Folder:
    """A folder that will be written to, and the room on its disk."""

    path: Path
    free_bytes: int
    disk: int  # the same number for folders on the same disk


@dataclass(frozen=True)
class Inventory:
    """What is known before anything is done."""

    made: frozenset[str]  # models in the folder where blocks look for them
    cards: Mapping[str, ModelCard]  # of all models whose files can be read now
    cached: frozenset[str]  # complete hub models in the user's cache
    asked: Mapping[str, int]  # bytes of hub models, as the hub says
    hub_folder: Folder
    models_folder: Folder
    measured_s: Mapping[str, float]  # of the measured blocks that the configuration still asks for
    changed: Mapping[str, str]  # how the configuration or a model of a measured block has changed
    prompt_tokens: Mapping[str, int]  # by prompt, estimated from the size of its text


def take_inventory(campaign: LoadedCampaign, blocks: list[Block]) -> Inventory:
    """Look at the disk, and ask the hub for the sizes that the configuration does not give."""
    config, models = campaign.config, campaign.models_folder
    made = made_models(config, models)
    files = model_files(config, made, models)
    cards = {
        name: card
        for name, file in files.items()
        if (card := card_here(file, models / f"{name}.json"))
    }
    remade = remade_models(campaign, blocks)
    measured, changed = {}, {}
    gate = Gate(campaign)
    for block in blocks:
        name, request = f"blocks/{block.block}", gate.block(block.block)
        seconds = gate.records.seconds(name, request)
        if seconds is not None and block.block in remade:
            changed[block.block] = remade[block.block]
        elif seconds is not None:
            measured[block.block] = seconds
        elif reason := gate.records.latest_change(name, request):
            changed[block.block] = reason
        elif (campaign.records / f"{block.block}.json").exists():
            changed[block.block] = "its record is of a version that kept no digests"
    return Inventory(
        made=made,
        cards=cards,
        cached=frozenset(files) - made,
        asked=_ask(config, frozenset(files)),
        hub_folder=_folder(cache_folder()),
        models_folder=_folder(models),
        measured_s=measured,
        changed=changed,
        prompt_tokens=_prompt_tokens(blocks, campaign.root),
    )


def _prompt_tokens(blocks: Iterable[Block], root: Path) -> dict[str, int]:
    sources = {source.prompt: source for block in blocks for source in block.prompts}
    files = {source.file for source in sources.values() if source.line is not None}
    lines = {file: dict(numbered_lines(root / file)) for file in files}
    tokens = {}
    for prompt, source in sources.items():
        if source.line is None:
            size = (root / source.file).stat().st_size
        else:
            size = len(lines[source.file][source.line].encode())
        tokens[prompt] = max(size // BYTES_PER_TOKEN, 1)
    return tokens


def made_models(config: Config, models: Path) -> frozenset[str]:
    """Return the needed models that are in the folder where blocks look for them."""
    return frozenset(
        name
        for name in config.needed_models
        if (models / f"{name}{config.models[name].suffix}").exists()
    )


def model_files(config: Config, made: frozenset[str], models: Path) -> dict[str, Path]:
    """Return the files of the models that are made, the user's own, or in the hub's cache."""
    files = {name: models / f"{name}{config.models[name].suffix}" for name in made}
    for name in config.needed_models:
        entry = config.models[name]
        if name in made:
            continue
        if isinstance(entry, PathModel):
            files[name] = Path(entry.path)
        elif isinstance(entry, HubModel) and (cached := hub.cached(entry)):
            files[name] = cached
    return files


def card_here(file: Path, written: Path) -> ModelCard | None:
    """Return the card beside a model, or read the model: its vocabulary takes a second."""
    with suppress(ModelError):  # not written yet, or by an older release
        return load_card(written)
    with suppress(ModelError):  # the model's own rule reports the fault
        return read_card(file, NOT_HASHED)
    return None


def _ask(config: Config, known: frozenset[str]) -> dict[str, int]:
    """Return the sizes that the hub gives of models without a file here or a configured size."""
    entries = {name: config.models[name] for name in config.needed_models if name not in known}
    asked = {
        name: hub.ask_size(entry)
        for name, entry in entries.items()
        if isinstance(entry, HubModel) and not entry.size_bytes
    }
    return {name: size for name, size in asked.items() if size is not None}


def _folder(path: Path) -> Folder:
    return Folder(path, free_bytes(path), existing(path).stat().st_dev)
