"""The prompt, target and draft of the demonstration, chosen from the configuration."""

from dataclasses import replace

from specmoe.config.block import Block, PromptSource, Protocol, Side
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method
from specmoe.config.schema import Config
from specmoe.config.trace import Demonstration


def choose_demonstration(config: Config, *, gpu: bool) -> Demonstration | None:
    """Return what the demonstration decodes; the campaign's first pair and prompt by default.

    The result is None if no suite pairs the target and draft, unless `trace` names both. It is also
    None for the published rows, which come without models. `gpu`: the backend uses one.
    """
    if config.campaign.source == "published":
        return None
    asked = config.trace
    blocks = list_blocks(config, gpu=gpu)
    paired = next((block for block in blocks if _pairs(block, asked.target, asked.draft)), None)
    target = asked.target or (paired.target if paired else None)
    draft = asked.draft or (paired.draft if paired else None)
    if target is None or draft is None:
        return None
    name = asked.prompt or _first_prompt(config, paired)
    prompt = config.prompts.texts[name]
    block = replace(
        blocks[0],  # for the settings that all blocks of a campaign share
        block=f"trace/{target}/{draft}/g{asked.gamma}",
        suite="trace",
        target=target,
        methods=(Method.DRAFT,),
        draft=draft,
        draft_model=draft,
        repeat=0,
        sides=(Side(asked.gamma, p_min=0.0, n_min=0),),
        prompts=(PromptSource(name, prompt.file),),
        passes=1,
        n_predict=asked.n_predict,
        temperature=0.0,  # both sides should give the same text
        seed=config.measurement.seed,
        warmups=0,
        protocol=Protocol.PAIRED,
    )
    return Demonstration(
        block=block,
        target_label=config.label(target),
        draft_label=config.label(draft),
        prompt_label=prompt.label,
        synthetic=any(map(config.is_synthetic, (target, draft))),
    )


def _first_prompt(config: Config, paired: Block | None) -> str:
    """Return the first text of the suite that pairs target and draft, or else of the config."""
    sent = config.suites[paired.suite].prompts if paired else []
    return sent[0] if sent else next(iter(config.prompts.texts))


def _pairs(block: Block, target: str | None, draft: str | None) -> bool:
    """Return whether a block speculates with this target and draft; None stands for any."""
    return (
        block.methods == (Method.DRAFT,)
        and block.protocol == Protocol.PAIRED
        and target in (None, block.target)
        and draft in (None, block.draft)
    )
