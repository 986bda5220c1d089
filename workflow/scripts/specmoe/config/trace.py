"""What the demonstration decodes, as plain data that its job receives, chosen from a campaign."""

from dataclasses import dataclass, replace

from specmoe.config.block import Block, Protocol
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method
from specmoe.config.parse import JobData
from specmoe.config.schema import Config
from specmoe.errors import ConfigError


@dataclass(frozen=True)
class Demonstration(JobData):
    """A block of one prompt and one side, and the labels under which readers see its models."""

    block: Block
    target_label: str
    draft_label: str
    synthetic: bool  # whether one of its models has random weights


def choose_demonstration(config: Config, *, gpu: bool) -> Demonstration | None:
    """Return what the demonstration decodes: what `trace` names, and the rest from the campaign.

    The result is None if no draft model drafts after a whole text, and for published rows, which
    come without models. `gpu`: the backend uses one. Raises ConfigError if no suite has what
    `trace` names.
    """
    if config.campaign.source == "published":
        return None
    asked = config.trace
    file = config.prompts.texts[asked.prompt].file if asked.prompt else None
    fitting = [
        (block, side, source)
        for block in list_blocks(config, gpu=gpu)
        for side in block.sides
        if side.method == Method.DRAFT
        and block.protocol == Protocol.PAIRED
        and asked.target in (None, block.target)
        and asked.draft in (None, side.draft_model)
        for source in block.prompts
        if source.length is None and file in (None, source.file)
    ]
    if not fitting:
        if named := ", ".join(filter(None, (asked.target, asked.draft, asked.prompt))):
            raise ConfigError(f"config: trace: no suite of this campaign drafts with {named}")
        return None
    # A target that drafts for itself is a control, and a level is one suite's.
    block, side, source = min(
        fitting, key=lambda one: (one[1].draft_model == one[0].target, one[0].level or "")
    )
    block = replace(
        block,
        prompts=(source,),
        sides=(replace(side, gamma=asked.gamma, p_min=None, imposed_acceptance=None),),
        n_predict=asked.n_predict,
        temperature=0.0,
        concurrency=None,
    )
    return Demonstration(
        block=block,
        target_label=config.label(block.target),
        draft_label=config.label(block.draft_models[0]),
        synthetic=any(map(config.is_synthetic, block.models)),
    )
