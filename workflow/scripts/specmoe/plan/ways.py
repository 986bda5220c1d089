"""What drafts in a campaign, what it loads for that, and what to know of it beforehand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specmoe.config.block import Block, Protocol, Side
from specmoe.config.methods import Method, engine_type, is_ngram
from specmoe.config.models import TruncateModel
from specmoe.config.schema import Config
from specmoe.models.card import ModelCard
from specmoe.models.sizes import Size
from specmoe.plan.estimate import ACCEPTANCE


@dataclass(frozen=True)
class Way:
    """One way of drafting for one target, with all its γ."""

    target: str  # its label
    label: str
    engine: str  # llama-server's `--spec-type`
    gammas: tuple[int, ...]
    loads: bool  # a file besides the target's
    file_bytes: int | None  # of that; None: unknown


def _is_control(config: Config, block: Block) -> bool:
    """Return whether a block's outcome is known beforehand, by the names of its models."""
    return block.draft_model in (block.target, *config.audit.unrelated_drafts)


def list_ways(config: Config, blocks: Iterable[Block], sizes: Mapping[str, Size]) -> list[Way]:
    """Return the ways of drafting of targets that have several, each once; no controls."""
    pairs: dict[tuple[str, str], tuple[Block, list[Side]]] = {}
    methods: dict[str, set[Method | None]] = {}
    for block in blocks:
        paired = block.speculates and block.protocol == Protocol.PAIRED
        if paired and not _is_control(config, block):
            pairs.setdefault((block.target, block.draft), (block, []))[1].extend(block.sides)
            methods.setdefault(block.target, set()).add(block.method)
    return [
        Way(
            target=config.label(block.target),
            label=config.draft_label(block),
            engine=engine_type(block.method),
            gammas=tuple(sorted({side.gamma for side in sides if side.speculates})),
            loads=block.draft_model is not None,
            file_bytes=size.file_bytes if (size := sizes.get(block.draft_model or "")) else None,
        )
        for (block, sides) in pairs.values()
        if len(methods[block.target]) > 1
    ]


def notes_on_mtp(
    config: Config, blocks: Iterable[Block], cards: Mapping[str, ModelCard]
) -> list[str]:
    """Return why MTP does not draft for files of the user's that n-grams draft for, a line each.

    `cards` has the models whose files are here.
    """
    methods: dict[str, set[Method]] = {}
    for block in blocks:
        if block.method:
            methods.setdefault(block.target, set()).add(block.method)
    notes = []
    for target, own in methods.items():
        if Method.MTP in own or config.is_synthetic(target) or not any(map(is_ngram, own)):
            continue
        if target not in cards:
            notes.append(
                f"Whether {config.label(target)} has an MTP block is known once its file is here"
                " (`snakemake models`): plan again then"
            )
        elif not cards[target].mtp_blocks:
            notes.append(f"The file of {config.label(target)} has no MTP block")
    return notes


def notes_on_cuts(config: Config, blocks: Iterable[Block]) -> list[str]:
    """Return which drafts are the first layers of a model, untrained, a line each."""
    drafts = dict.fromkeys(block.draft_model for block in blocks if block.draft_model)
    return [
        f"{config.label(draft)} is cut and not trained: a target accepts little of such a draft,"
        f" far less than the {ACCEPTANCE:.0%} that the time assumes"
        for draft in drafts
        if isinstance(config.models[draft], TruncateModel) and not config.is_synthetic(draft)
    ]
