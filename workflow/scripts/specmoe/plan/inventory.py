"""The inventory of a campaign: files that can be measured, and facts for its plan.

Of files only the headers are read. What is made or downloaded later is read back by the rules of
models, which use the same checks.
"""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.places import Places
from specmoe.config.block import MEASURE_VERSION, Block, PromptSource, Protocol
from specmoe.config.engines import COUNTS_SINCE, NGRAM_MAKER, PathEngine, refuse_exported
from specmoe.config.matrix import comparisons
from specmoe.config.models import HubModel, PathModel, QuantizeModel
from specmoe.config.schema import Config
from specmoe.config.workloads import read_chat
from specmoe.engine.identity import require_compiler, require_programs
from specmoe.engine.job import check_words
from specmoe.errors import ConfigError, ModelError, SpecmoeError
from specmoe.files import existing, require_files
from specmoe.hardware.machine import build_of, help_of
from specmoe.models import hub
from specmoe.models.chats import Said, look_at_chats
from specmoe.models.gguf import check_family, check_pair, check_target, check_type, read_info
from specmoe.models.info import ModelInfo, Size, load_info
from specmoe.plan.estimate import size_of
from specmoe.records import head_of

# Of prompt texts: usual ones, and the most. English has 4.5, code and Chinese have 3 to 4.
BYTES_PER_TOKEN, MOST_BYTES_PER_TOKEN = 4, 6

Known = dict[str, tuple[Path, ModelInfo]]
"""Models that are here, by name: their files and infos."""


@contextmanager
def _collecting(errors: list[Exception]) -> Iterator[None]:
    try:
        yield
    except (SpecmoeError, OSError) as error:
        errors.append(error)


def _check_texts(blocks: Iterable[Block], root: Path, errors: list[Exception]) -> None:
    """Check that prompts have a text, and that it is not surely longer than the context."""
    for prompt, (source, block) in sorted(_sent_in(blocks).items()):
        with _collecting(errors):
            size = _bytes_of(source, block, root)
            if not size:
                raise ConfigError(f"{root / source.file} has no text, and it is a prompt")
            further = block.n_predict + max(arm.longest for arm in block.arms)
            needed = size // MOST_BYTES_PER_TOKEN + further
            if source.length is None and needed > block.context:
                raise ConfigError(
                    f"prompt {prompt} has {size} bytes of text; with the output these are {needed}"
                    f" tokens at least, and measurement.context is {block.context}: give it"
                    f" {-(-(size // 3 + further) // 1024) * 1024}, or leave the prompt out"
                )


def _sent_in(blocks: Iterable[Block]) -> dict[str, tuple[PromptSource, Block]]:
    """Return each prompt with a block that sends it."""
    return {source.prompt: (source, block) for block in blocks for source in block.prompts}


def _bytes_of(source: PromptSource, block: Block, root: Path) -> int:
    """Return the bytes of a prompt's text."""
    chat = read_chat(root / source.file, source.line, block.sending_of(source), source.turn)
    texts = [str(message["content"] or "") for message in chat["messages"]]
    texts += [json.dumps(chat["tools"])] if "tools" in chat else []
    return sum(len(text.strip().encode()) for text in texts)


def _near(config: Config, model: str, known: Known) -> tuple[Path, ModelInfo] | None:
    """Return a model, or the nearest known one that it is made from: it has its vocabulary."""
    return next((known[name] for name in config.lineage(model) if name in known), None)


def _check_pairs(campaign: LoadedCampaign, known: Known, errors: list[Exception]) -> None:
    """Check that targets can be such, and that what drafts fits them, as far as files are known."""
    blocks = campaign.blocks.values()
    for name in sorted({block.target for block in blocks} & known.keys()):
        with _collecting(errors):
            check_target(known[name][0])
    pairs = ((block.target, *drafting) for block in blocks for drafting in block.drafting)
    for name, method, drafting in dict.fromkeys(pairs):
        pair = [near for side in (name, drafting) if (near := _near(campaign.config, side, known))]
        if len(pair) > 1:
            (target, verifies), (draft, drafts) = pair
            digests = {verifies.vocabulary_sha256, drafts.vocabulary_sha256}
            with _collecting(errors):
                check_pair(target, draft, method, digests, made=drafting in known)


def _look_at_chats(campaign: LoadedCampaign, known: Known) -> Iterator[Said]:
    """Yield what is to be said of the chats of a campaign; `known` are the models here."""
    config = campaign.config
    for suite in config.campaign.suites:
        for block in comparisons(config, suite):
            file, info = _near(config, block.target, known) or (None, None)
            yield from look_at_chats(block, file, campaign.places.root)
            thinks = info.thinking if info else None
            # Of one that knows of no thinking either there is nothing to compare.
            ignores = not thinks.heeded if thinks else info and block.factor == "thinking"
            if block.sends_chats and ignores:
                for told in {sending.thinking for sending in block.sendings.values()} - {None}:
                    way = "; give n_predict room for what it thinks" if thinks and not told else ""
                    words = f"ignores `thinking: {str(told).lower()}`, which has no effect{way}"
                    yield f"the chat template of {block.target} {words}", False


def _check_engines(campaign: LoadedCampaign, errors: list[Exception]) -> None:
    """Check engines, which are asked if they are here, and that nothing exported steers one."""
    config = campaign.config
    kinds = {entry.kind for entry in config.needed_models.values()}
    makers = {"quantize": "llama-quantize", "ngram_cache": NGRAM_MAKER}
    programs = ["llama-server", *(tool for kind, tool in makers.items() if kind in kinds)]
    if any(config.protocol_of(suite) == Protocol.STUDY for suite in config.campaign.suites):
        programs += ["llama-bench", "llama-speculative"]
    for engine in campaign.engine_ids:
        binaries = _binaries(campaign, engine)
        with _collecting(errors):
            if binaries is None:
                require_compiler()
                continue
            require_programs(binaries, programs)
            if engine == config.campaign.engine:  # others measure by protocol study alone
                check_words(binaries / "llama-server", campaign.blocks.values())
    with _collecting(errors):
        refuse_exported(config.measurement.environment, os.environ)
    tools = _binaries(campaign, config.campaign.engine)
    tells = help_of(tools / "llama-quantize") if tools else ""
    for entry in config.needed_models.values():
        with _collecting(errors):
            if isinstance(entry, QuantizeModel):
                check_type(entry.type, tells)


def _binaries(campaign: LoadedCampaign, engine: str) -> Path | None:
    """Return the folder of an engine's programs: installed, or one's own; None: to be built."""
    file = campaign.places.engine_file(campaign.engine_ids[engine])
    if file.exists():
        return file.with_name("bin")
    entry = campaign.config.engines[engine]
    return entry.folder if isinstance(entry, PathEngine) else None


def _find_models(places: Places, errors: list[Exception]) -> tuple[frozenset[str], Known]:
    """Return the models that are made, the user's own, or in the hub's cache; and what they are.

    The user's own must be whole, and of their family.
    """
    files, known = dict[str, Path](), Known()
    for name, entry in places.config.needed_models.items():
        if isinstance(entry, PathModel):
            files[name] = file = Path(entry.path)
            with _collecting(errors):
                require_files(file)
                known[name] = file, read_info(file)
                if family := places.config.family(name):
                    check_family(known[name][1], family, file)
            continue
        if (made := places.model_file(name)).exists():
            files[name] = made
        elif isinstance(entry, HubModel) and (cached := hub.cached(entry)):
            files[name] = cached
        if name in files:
            with suppress(ModelError):  # the model's own rule reports the error
                known[name] = files[name], _info(files[name], places.info(name))
    return frozenset(files), known


def _info(file: Path, written: Path) -> ModelInfo:
    """Return the info beside a model, or read the model: its vocabulary takes a second."""
    try:
        return load_info(written)
    except ModelError:  # not written yet, or by an older release
        return read_info(file)


class Folder(NamedTuple):
    """A folder that will be written to, and the room on its disk."""

    path: Path
    free_bytes: int
    disk: int  # the same number for folders on the same disk


@dataclass(frozen=True)
class Inventory:
    """What is known before anything is done."""

    here: frozenset[str]  # models that are made, or complete in the user's cache
    sizes: Mapping[str, Size]  # of the models whose sizes are known
    hub_folder: Folder
    models_folder: Folder
    measured: Mapping[str, float]  # seconds of blocks, as the configuration asks for them now
    # Blocks that were measured before, by suite and by what differs in their request now.
    again: Mapping[tuple[str, str], list[Block]]
    prompt_tokens: Mapping[str, int]  # by prompt, estimated from the size of its text
    former: int = 0  # blocks of 2.0.0, which had all prompts
    unbuilt: tuple[str, ...] = ()  # engines that are built first
    chats: tuple[str, ...] = ()  # what is to be said of them
    # Of engines of one's own that may count wrongly for a target: their builds; 0: unknown.
    early_builds: Mapping[str, int] = field(default_factory=dict)


def take_inventory(campaign: LoadedCampaign, blocks: list[Block]) -> Inventory:
    """Look at the disk, and ask the hub for the sizes that the configuration does not give.

    Raises an ExceptionGroup of all errors, which name the path that the configuration has, if a
    campaign is measured here and cannot be, as far as its files, now here, and variables say.
    """
    config, places, errors = campaign.config, campaign.places, list[Exception]()
    _check_texts(campaign.blocks.values(), places.root, errors)
    _check_engines(campaign, errors)
    here, known = _find_models(places, errors)
    _check_pairs(campaign, known, errors)
    said = list[Said]()
    with _collecting(errors):
        said += _look_at_chats(campaign, known)
    errors += [ConfigError(words) for words, is_error in said if is_error]
    if errors and config.campaign.source == "measured":
        raise ExceptionGroup("errors of the campaign", errors)
    infos = {name: info for name, (_, info) in known.items()}
    asked = {
        name: size
        for name, entry in config.needed_models.items()
        if isinstance(entry, HubModel)
        and name not in here
        and not entry.size_bytes
        and (size := hub.ask_size(entry)) is not None
    }
    sizes = {name: size_of(name, config, infos, asked) for name in config.needed_models}
    measured, again = {}, defaultdict[tuple[str, str], list[Block]](list)
    requests = Asked(campaign)
    for block in blocks:
        name, request = f"blocks/{block.block}", requests.block(block.block)
        if (seconds := requests.records.seconds(name, request)) is not None:
            measured[block.block] = seconds
        elif reason := requests.records.latest_change(name, request):
            again[block.suite, reason].append(block)
    hub_folder, models_folder = (
        Folder(path, shutil.disk_usage(existing(path)).free, existing(path).stat().st_dev)
        for path in (hub.CACHE, places.models_folder)
    )
    return Inventory(
        here=here,
        sizes={name: size for name, size in sizes.items() if size},
        hub_folder=hub_folder,
        models_folder=models_folder,
        measured=measured,
        again=again,
        former=sum(
            head.request.get("version", 0) < MEASURE_VERSION
            for file in (places.folder / "blocks").rglob("r*.jsonl")
            if (head := head_of(file))
        ),
        prompt_tokens={
            prompt: max(_bytes_of(*sent, places.root) // BYTES_PER_TOKEN, 1)
            for prompt, sent in _sent_in(blocks).items()
        },
        unbuilt=tuple(name for name in campaign.engine_ids if _binaries(campaign, name) is None),
        chats=tuple(dict.fromkeys(words for words, _ in said)),
        early_builds={
            name: build
            for name in campaign.engine_ids
            if isinstance(engine := config.engines[name], PathEngine)
            and any(info.restored for info in infos.values())
            and (build := build_of(engine.folder / "llama-server")[1]) < COUNTS_SINCE
        },
    )
