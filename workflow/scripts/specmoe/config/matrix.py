"""The blocks of a campaign and their order, from its configuration."""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import product

from specmoe.config.block import (
    ITSELF,
    NO_DRAFT,
    PASSAGE_PREFIX,
    Block,
    Method,
    PromptSource,
    Protocol,
)
from specmoe.config.measurement import Order
from specmoe.config.schema import Config, Suite

# The text of the study's suite F (its repository, commit 4a72d16), which sends its first n words:
# "Please write a detailed analysis of " and 50 times "the following topic. ", 156 in all.
PUBLISHED_PASSAGE = "resources/prompts/published_topic.txt"


def list_blocks(config: Config, *, gpu: bool) -> list[Block]:
    """Return every block of the campaign, suite after suite; `gpu`: the backend uses one."""
    return [
        block
        for name, suite in config.selected_suites.items()
        for block in _suite_blocks(config, name, suite, gpu)
    ]


def cell_of(block: str) -> str:
    """Return the id of a block's cell: the block's id without its repeat."""
    return block.rpartition("/")[0]


def schedule(
    blocks: Iterable[Block], baselines: Mapping[str, str], seed: int, order: Order = Order.MIXED
) -> list[Block]:
    """Return the blocks in the order of measurement.

    `baselines` names the suite that has the baselines of a suite, where that is another one.

    Repeats follow one another. Within a repeat, the blocks of a target that share their baselines
    form a group, so that a run and its baseline are close in time. Groups are shuffled, and so are
    the blocks in each: drift of the machine affects all suites alike. The order of two blocks
    depends on those two alone, so adding blocks reorders nothing. With `Order.BY_TARGET` the groups
    of a target follow one another: a machine whose memory holds only one target's weights then
    reads them once a repeat.
    """

    def sort_key(block: Block) -> tuple[int, bytes, bytes, bytes]:
        stretch = _shuffle_key(seed, block.target) if order == Order.BY_TARGET else b""
        group = f"{block.target}/{baselines.get(block.suite, block.suite)}"
        return block.repeat, stretch, _shuffle_key(seed, group), _shuffle_key(seed, block.block)

    return sorted(blocks, key=sort_key)


def _suite_blocks(config: Config, name: str, suite: Suite, gpu: bool) -> list[Block]:
    measurement = config.measurement
    protocol = config.protocol_of(name)
    passage = PUBLISHED_PASSAGE if protocol == Protocol.PUBLISHED else config.prompts.passage
    prompts = [
        *(PromptSource(prompt, config.prompts.texts[prompt].file) for prompt in suite.prompts),
        *(
            PromptSource(f"{PASSAGE_PREFIX}{length}", passage, length)
            for length in suite.prompt_lengths
        ),
    ]
    blocks = []
    temperatures = suite.temperatures or [measurement.temperature]
    for target, named in product(suite.targets, suite.drafts):
        draft = target if named == ITSELF else named
        has_draft = draft != NO_DRAFT
        gammas = suite.gammas if has_draft else [0]
        imposed: list[float | None] = [*suite.imposed_acceptance] if has_draft else []
        for gamma, acceptance, temperature in product(gammas, imposed or [None], temperatures):
            parts = [name, target, draft, f"g{gamma}"]
            parts += [] if acceptance is None else [f"a{acceptance:g}"]
            parts += [f"t{temperature:g}"] if suite.temperatures else []
            cell = "/".join(parts)
            repeats = max(measurement.repeats, measurement.more_repeats.get(cell, 0))
            for repeat in range(repeats):
                block = f"{cell}/r{repeat}"
                blocks.append(
                    Block(
                        block=block,
                        suite=name,
                        target=target,
                        method=Method.DRAFT if has_draft else Method.NONE,
                        draft=draft,
                        gamma=gamma,
                        repeat=repeat,
                        prompts=_shuffled(prompts, block, measurement.order_seed),
                        n_predict=measurement.n_predict,
                        temperature=temperature,
                        # Greedy repeats must agree; repeats at a temperature are samples.
                        seed=measurement.seed + (repeat if temperature > 0 else 0),
                        warmups=measurement.warmups,
                        context=measurement.context,
                        threads=measurement.threads,
                        gpu_layers=measurement.gpu_layers if gpu else 0,
                        protocol=protocol,
                        imposed_acceptance=acceptance,
                        environment=measurement.environment,
                    )
                )
    return blocks


def _shuffled(prompts: list[PromptSource], block: str, seed: int) -> tuple[PromptSource, ...]:
    return tuple(sorted(prompts, key=lambda source: _shuffle_key(seed, f"{block}/{source.prompt}")))


def _shuffle_key(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
