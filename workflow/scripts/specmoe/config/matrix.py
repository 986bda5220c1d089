"""The blocks of a campaign and their order, from its configuration."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain, product

from specmoe.config.block import (
    NO_DRAFT,
    WARMUP_TOKENS,
    Arm,
    Block,
    Outputs,
    PromptSource,
    Protocol,
    TimedPasses,
    level_id,
    shuffle_key,
)
from specmoe.config.engines import PathEngine
from specmoe.config.factors import TURNS, at_levels
from specmoe.config.methods import is_ngram
from specmoe.config.schema import Config, Suite
from specmoe.config.workloads import TextsWorkload, sending_of

# The text of the study's suite F (its repository, commit 4a72d16), which sends its first n words:
# "Please write a detailed analysis of " and 50 times "the following topic. ", 156 in all.
STUDY_PASSAGE = "resources/prompts/published_topic.txt"
# What blocks have of `measurement` as it is there.
_AS_GIVEN = {"n_predict", "temperature", "seed", "warmups", "context", "threads"}
_AS_GIVEN |= {"environment", "reruns"}
# In the ids of blocks of baselines, before the first repeat of a campaign.
TEXTS = "/texts-alone/"
# Prompts of a block on a GPU. A run there takes less time than loading its model does.
GPU_PROMPTS = 5


def list_blocks(config: Config, *, gpu: bool) -> list[Block]:
    """Return every block to measure, suite after suite; `gpu`: the backend uses one."""
    every = every_block(config, gpu=gpu)
    blocks = [kept for block in every if (kept := without(block, config.campaign.exclude))]
    if not config.measurement.staged:
        return blocks
    read = set(chain.from_iterable(list_scoring(config, blocks).values()))
    texts = [texts_alone(block) for block in blocks if block.repeat == 0 and block.speculates]
    # They also tell how long runs take, where minutes decide what is tried.
    timed = config.measurement.minutes is not None
    return [block for block in texts if timed or block.block in read] + blocks


def texts_alone(block: Block) -> Block:
    """Return the block in which a block's target writes alone what is then scored."""
    place, _, repeat = block.block.rpartition("/")
    return replace(block, block=f"{place}{TEXTS}{repeat}", arms=(block.baseline,))


def excluded_blocks(config: Config) -> list[Block]:
    """Return what the configuration leaves out: blocks, with the arms that are not measured."""
    excluded = []
    for block in every_block(config):
        kept = without(block, config.campaign.exclude)
        if arms := [arm for arm in block.arms if not kept or arm not in kept.arms]:
            excluded.append(replace(block, arms=tuple(arms)))
    return excluded


def without(block: Block, excluded: Collection[str]) -> Block | None:
    """Return a block without the settings that are left out; None if nothing of it is measured."""
    arms = tuple(arm for arm in block.arms if names_of(block, arm).isdisjoint(excluded))
    kept = replace(block, arms=arms)
    return kept if arms and kept.speculates == block.speculates else None


# Of the n-gram settings that are scored, so many are measured of each comparison.
MOST_NGRAMS = 2


def begun(config: Config, block: Block) -> Block:
    """Return a block as stages begin with it, without the settings that wait.

    Of n-grams it has as many as are measured if they are scored: the last, which take longest.
    """
    scored = f"ngrams/{block.target}" in list_scoring(config, [block])
    played = [arm for arm in block.arms if scored and is_ngram(arm.method)]
    waiting = [arm for arm in block.arms if arm.waits]
    later = {setting_of(block, arm) for arm in (*played[:-MOST_NGRAMS], *waiting)}
    return without(block, later) or block


def names_of(block: Block, arm: Arm) -> set[str]:
    """Return the names by which someone leaves an arm out of a block.

    They are the ids of its comparison, `methods/big`, of what drafts, `methods/big/small`,
    and of its setting, `methods/big/small/g8`; each with one repeat, `methods/big/r1`; and the
    block's.
    """
    drafts = {f"{block.comparison}/{arm.draft}", setting_of(block, arm)}
    names = {block.comparison, *(drafts if arm.speculates else ())}
    return names | {f"{name}/r{block.repeat}" for name in names} | {block.block}


def setting_of(block: Block, arm: Arm) -> str:
    """Return the id of a setting in all its repeats: `methods/big/small/g8`."""
    return f"{block.comparison}/{arm.name}"


def block_order(blocks: Iterable[Block], order: str = "mixed") -> list[Block]:
    """Return the blocks in the order of measurement, which `measurement.order` names.

    Repeats follow one another. Within a repeat, blocks are shuffled: drift of the machine affects
    all suites alike. The order of two blocks depends on those two alone, so adding blocks reorders
    nothing. With `by_target` the blocks of a target follow one another: a machine whose memory
    holds only one target's weights then reads them once a repeat.
    """

    def sort_key(block: Block) -> tuple[int, bool, bytes, bytes]:
        stretch = shuffle_key(block.order_seed, block.target) if order == "by_target" else b""
        drawn = shuffle_key(block.order_seed, block.block)
        return block.repeat, TEXTS not in block.block, stretch, drawn

    return sorted(blocks, key=sort_key)


# The widths of a target's passes, whatever the γ: kernels change within them, so the best γ may be
# one that no suite has.
EVERY_WIDTH = range(1, 18)
# Of the minutes that a campaign may take, or of those left: passes that are timed before a repeat.
PASSES_SHARE = 0.1
# Equal passes in a row. A GPU's second one is captured as a graph, which those after it launch.
_ROW, _ROW_GPU = 2, 5


def list_timed_passes(config: Config, blocks: Iterable[Block]) -> list[TimedPasses]:
    """Return the passes of each target, and of each draft model, that speculates in some block.

    A draft model's widths are those of single tokens, of the shortest replays, and of the rounds of
    every γ; a target's are those, and all up to the widest of `EVERY_WIDTH`.
    """
    measurement, timed = config.measurement, _known_to_our_program(config, blocks)
    passes = defaultdict[str, set[tuple[Outputs, int]]](set)
    for target, arm in ((block.target, arm) for block in timed for arm in block.arms):
        if arm.speculates:
            widths = (*EVERY_WIDTH, *(length + 1 for length in arm.lengths))
            passes[target].update(product([Outputs.ALL], widths))
        # Other methods' files are no models by themselves.
        if arm.draft_model and arm.by_model:
            widths = (1, 2, arm.gamma + 1, EVERY_WIDTH[-1])
            passes[arm.draft_model].update(product([Outputs.LAST], widths))
    targets = {block.target for block in timed}
    return [
        TimedPasses(
            model=model,
            passes=tuple(sorted(shapes)),
            samples=measurement.pass_samples,
            # Half of the share: in the other half their experts are counted.
            seconds=measurement.minutes and 30 * measurement.minutes * PASSES_SHARE / len(passes),
            row=_ROW_GPU if timed[0].gpu_layers else _ROW,
            text=config.prompts.passage,
            gpu_layers=timed[0].gpu_layers,
            engine_args=tuple(measurement.engine_args) if model in targets else (),
            **measurement.model_dump(include={"context", "threads", "environment", "reruns"}),
        )
        for model, shapes in passes.items()
    ]


def _known_to_our_program(config: Config, blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks whose passes our program can do by itself, with the campaign's options.

    They have the arms of those passes alone.
    """
    if not _has_our_program(config):
        return []
    usual = Protocol.PAIRED, (*config.measurement.engine_args,)
    known = (block for block in blocks if (block.protocol, block.engine_args) == usual)
    alike = (replace(block, arms=tuple(filter(block.is_timed, block.arms))) for block in known)
    return [block for block in alike if block.arms]


def _has_our_program(config: Config) -> bool:
    """Return whether it is built: it needs the engine's libraries, which others may lack."""
    engine = config.engines[config.campaign.engine]
    return config.measurement.pass_samples > 0 and not isinstance(engine, PathEngine)


def scores_ngrams(config: Config, suite: Suite) -> bool:
    """Return whether n-grams of a suite are scored before the first repeat, and few measured.

    Not of targets that are compared with each other, of which all is measured, nor where requests
    or options vary: passes are timed for one request, with the campaign's options.
    """
    plain = config.measurement.temperature == 0 and suite.vary.keys() <= {"prompt_tokens"}
    plain &= config.measurement.memory is None and not suite.baseline_args
    chosen = config.measurement.staged and config.paired_targets.isdisjoint(suite.targets)
    return plain and chosen and _has_our_program(config)


def list_scoring(config: Config, blocks: Iterable[Block]) -> dict[str, list[str]]:
    """Return the blocks whose texts are read, by the record of what that gives.

    `agreement/<draft model>` is of a draft model, which drafts there alone and greedily, whatever
    options the target has; `ngrams/<target>` of n-grams that are played, see
    `measure.model_passes`. In stages they read before the first repeat what targets write in blocks
    of their own.
    """
    read: dict[str, list[str]] = {}
    staged = config.measurement.staged
    for block in _known_to_our_program(config, blocks):
        if block.temperature == 0 and Arm() in block.arms and not (staged and block.repeat):
            name = texts_alone(block).block if staged else block.block
            plain = [arm for arm in block.arms if arm.forced_acceptance is None]
            readers = {f"agreement/{arm.draft_model}" for arm in plain if arm.by_model}
            looks_up = any(is_ngram(arm.method) for arm in plain)
            if looks_up and scores_ngrams(config, config.suites[block.suite]):
                readers.add(f"ngrams/{block.target}")
            for reader in readers:
                read.setdefault(reader, []).append(name)
    return dict(sorted(read.items()))


def every_block(config: Config, *, gpu: bool = False) -> list[Block]:
    """Return the blocks of all suites, with those that the campaign leaves out."""
    prompts = config.measurement.block_prompts or (GPU_PROMPTS if gpu else 1)
    return [
        replace(part, block=f"{part.block}/r{repeat}", repeat=repeat)
        for name in config.campaign.suites
        for block in comparisons(config, name, gpu=gpu)
        for part in _parts(block, prompts)
        for repeat in range(config.measurement.most)
    ]


def _parts(block: Block, prompts: int) -> Iterator[Block]:
    """Yield the blocks that a comparison becomes in each repeat, with so many prompts at most.

    A load sends all, and so do the study's commands. Which prompts share a block is drawn, and does
    not change with the repeat. A chat that is sent turn by turn has a block of its own: chats are
    the sample, and not their turns, which are alike.
    """
    whole = block.concurrency is not None or block.protocol == Protocol.STUDY
    chats, prompts = block.chats, 1 if block.by_turns else prompts
    if whole or len(chats) <= prompts:
        yield block
        return
    if prompts > 1:
        chats.sort(key=lambda chat: block.drawn(chat[0].chat))
    for first in range(0, len(chats), prompts):
        part = tuple(chain.from_iterable(chats[first : first + prompts]))
        more = f"+{len(part) - 1}" if part[1:] else ""
        yield replace(block, block=f"{block.block}/{part[0].chat}{more}", prompts=part)


def comparisons(config: Config, name: str, *, gpu: bool = False) -> Iterator[Block]:
    """Yield each comparison of a suite as one block with all its prompts, under its id."""
    suite, measurement = config.suites[name], config.measurement
    protocol = config.protocol_of(name)
    passage = STUDY_PASSAGE if protocol == Protocol.STUDY else config.prompts.passage
    prompts = tuple(_prompts(config, suite))
    [stop] = config.stops_of(name)
    for target in suite.targets:
        arms = tuple(_arms(suite, target, protocol))
        if not any(arm.speculates for arm in arms) and suite.ways:
            continue  # nothing drafts for this target
        longest = max(WARMUP_TOKENS, *(2 + arm.longest for arm in arms))
        block = Block(
            block="",
            comparison="",
            suite=name,
            target=target,
            repeat=0,
            arms=arms,
            prompts=prompts,
            warmup_tokens=min(longest, measurement.n_predict),
            gpu_layers=measurement.gpu_layers if gpu else 0,
            protocol=protocol,
            stop=stop,
            **measurement.model_dump(include=_AS_GIVEN),
            sendings={key: sending_of(config.workloads[key]) for key in suite.workloads},
            engine_args=(*measurement.engine_args,),
        )
        for varied in at_levels(block, suite.vary):
            level = "" if varied.level is None else f"/{level_id(varied.level)}"
            sent = (replace(source, file=source.file or passage) for source in varied.prompts)
            comparison = f"{name}/{target}{level}"
            named = replace(varied, block=comparison, comparison=comparison, prompts=tuple(sent))
            words = [config.fitted.get(setting_of(named, arm), (None, 0))[0] for arm in named.arms]
            pairs = zip(named.arms, words, strict=True)
            yield replace(named, arms=tuple(replace(arm, fitted=own) for arm, own in pairs))


def _arms(suite: Suite, target: str, protocol: Protocol) -> Iterator[Arm]:
    """Yield a baseline, then each setting of all that drafts for it.

    The study's commands compare with baselines of other prompts unless a suite names its own.
    """
    if not suite.ways or protocol == Protocol.PAIRED or NO_DRAFT in suite.drafts:
        yield Arm(engine_args=tuple(suite.baseline_args) or None)
    for way in suite.ways:
        if target in (way.targets or suite.targets):
            yield from (Arm(**setting) for setting in way.settings(target, suite.gammas))


def _prompts(config: Config, suite: Suite) -> Iterator[PromptSource]:
    texts = config.prompts.texts
    for given in suite.prompts:
        if isinstance(given, str):
            yield PromptSource(given, texts[given].file)
        else:
            yield PromptSource.of_length(given)
    for name in suite.workloads:
        workload = config.workloads[name]
        for prompt in workload.prompts:
            for turn in range(1, 1 + prompt.turns) if prompt.turns else [None]:
                yield PromptSource(
                    f"{name}-{prompt.id}" + (f"-t{turn}" if turn else ""),
                    texts[prompt.id].file if isinstance(workload, TextsWorkload) else workload.file,
                    line=prompt.line,
                    workload=name,
                    category=prompt.category,
                    level=TURNS[turn > 1] if turn else None,
                    turn=turn,
                )


def choose_demonstration(config: Config, *, gpu: bool) -> Block | None:
    """Return the block of the demonstration: the campaign's first text, and a draft model.

    The result is None if no other model drafts after a whole text. `gpu`: the backend uses one.
    """
    for block in list_blocks(config, gpu=gpu):
        texts = [source for source in block.prompts if source.length is None]
        models = [arm for arm in block.arms if arm.by_model]
        pairs = [arm for arm in models if arm.draft_model != block.target]  # no control
        if texts and pairs and block.protocol == Protocol.PAIRED:
            arm = min(pairs, key=lambda pair: abs(pair.gamma - 4))  # which fits a screen
            return replace(
                block,
                prompts=(texts[0],),
                arms=(replace(arm, p_min=None, forced_acceptance=None),),
                n_predict=min(block.n_predict, 64),
                warmup_tokens=0,
                temperature=0.0,
                concurrency=None,
            )
    return None
