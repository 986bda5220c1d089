"""What a shortlist of a campaign's settings needs to know: what its targets write alone.

The blocks here are measured first. `analysis.shortlist` predicts from them, and from the time of
passes, which settings are worth measuring.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, Block, Protocol, Side, Stop
from specmoe.config.matrix import reads_texts
from specmoe.config.schema import Config


def claim_of(prompts: Collection[str], *, until_end: bool) -> tuple[int, int, bool]:
    """Return what makes prompts, of all that a target gets, those that answer; no speed does."""
    texts = sum(not prompt.startswith(PASSAGE_PREFIX) for prompt in prompts)
    return texts, len(prompts), until_end


def contenders(config: Config, blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks whose settings advice chooses from, all repeats, in the order of `blocks`.

    Of each target those on the prompts that answer, see `analysis.advice`. Controls are none.
    """
    blocks = [block for block in blocks if _may_answer(config, block)]
    best: dict[str, tuple[int, int, bool]] = {}
    for block in blocks:
        best[block.target_setting] = max(
            best.get(block.target_setting, _claim(block)), _claim(block)
        )
    return [block for block in blocks if _claim(block) == best[block.target_setting]]


def alone_blocks(config: Config, contenders: Iterable[Block]) -> list[Block]:
    """Return blocks that measure once, alone, each target whose text a contender's draft reads."""
    alone = {}
    for block in contenders:
        name = f"{block.suite}/{block.target_setting}/{NO_DRAFT}/r0"
        if block.repeat == 0 and reads_texts(config, block):
            alone[name] = replace(
                block,
                block=name,
                methods=(),
                draft=NO_DRAFT,
                draft_model=None,
                sides=(Side(),),
                passes=1,
            )
    return list(alone.values())


def is_control(config: Config, block: Block) -> bool:
    """Return whether a block's outcome is known beforehand, by the names of its models."""
    return block.draft_model in (block.target, *config.audit.unrelated_drafts)


def _may_answer(config: Config, block: Block) -> bool:
    own = any(side.speculates and side.imposed_acceptance is None for side in block.sides)
    usual = block.temperature == config.measurement.temperature and block.concurrency is None
    several = len(config.suites[block.suite].temperatures) > 1
    paired = block.protocol == Protocol.PAIRED
    return paired and own and usual and not several and not is_control(config, block)


def _claim(block: Block) -> tuple[int, int, bool]:
    prompts = [source.prompt for source in block.prompts]
    return claim_of(prompts, until_end=block.stop == Stop.EOS)
