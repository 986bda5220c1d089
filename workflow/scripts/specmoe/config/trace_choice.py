"""What the demonstration decodes, and how it drafts, chosen from the configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import ValidationError

from specmoe.config.base import describe_fault
from specmoe.config.block import Block, PromptSource, Protocol, Side, Stop
from specmoe.config.drafting import Drafting, TraceSettings, list_key
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import METHODS, PARAMETERS, Loads, Method, chain_name, parameters_of
from specmoe.config.schema import Config
from specmoe.config.trace import Demonstration
from specmoe.errors import ConfigError


def choose_demonstration(config: Config, *, gpu: bool) -> Demonstration | None:
    """Return what the demonstration decodes: what `trace` names, and the rest from the campaign.

    The result is None if the campaign drafts nothing and `trace` names nothing that does. It is
    also None for the published rows, which come without models. `gpu`: the backend uses one. Raises
    ConfigError if what `trace` names does not fit together.
    """
    if config.campaign.source == "published":
        return None
    asked = config.trace
    blocks = list_blocks(config, gpu=gpu)
    like = _most_alike(blocks, asked)
    if like is None and not (asked.target or asked.method or asked.draft):
        return None
    target, methods, draft = _named(asked, like, blocks[0].target)
    way = _way(asked, methods, draft)
    if fault := way.fault_of_lengths([asked.gamma]):
        raise ConfigError(f"config: trace: {fault}")
    side = Side(**next(way.settings([asked.gamma])))
    source, sent = _source(asked, like, config)
    drafter = way.drafter_id(draft)
    options = config.option_setting("")
    block = replace(
        blocks[0],  # for the settings that all blocks of a campaign share
        block=f"trace/{target}/{drafter}/{side.name}",
        suite="trace",
        target=target,
        methods=methods,
        draft=drafter,
        draft_model=draft,
        repeat=0,
        sides=(side,),
        prompts=(source,),
        passes=1,
        n_predict=asked.n_predict,
        temperature=0.0,  # both sides should give the same text
        seed=config.measurement.seed,
        warmups=0,
        protocol=Protocol.PAIRED,
        stop=sent.stop if sent else Stop.LENGTH,
        sendings=sent.sendings if sent else {},
        threads=options.threads or config.measurement.threads,
        engine_options=options.options,
        extra_args=options.extra_args,
        options_id=options.id,
        concurrency=None,
    )
    return Demonstration(
        block=block,
        target_label=config.label(target),
        draft_label=config.label(draft) if draft else None,
        prompt_label=config.prompt_label(source.prompt),
        synthetic=any(map(config.is_synthetic, block.models)),
    )


def _most_alike(blocks: Iterable[Block], asked: TraceSettings) -> Block | None:
    """Return the first block that drafts as `trace` asks, one with a draft model if there is any.

    A target that drafts for itself is a control, and comes last.
    """
    fitting = (
        block
        for block in blocks
        if block.speculates
        and block.protocol == Protocol.PAIRED
        and asked.target in (None, block.target)
        and asked.draft in (None, block.draft_model)
        and tuple(asked.method) in ((), block.methods)
    )
    return min(
        fitting,
        key=lambda block: (block.draft_model == block.target, block.methods != (Method.DRAFT,)),
        default=None,
    )


def _named(
    asked: TraceSettings, like: Block | None, first_target: str
) -> tuple[str, tuple[Method, ...], str | None]:
    """Return the target, the methods and the file that they load.

    They need no block of the campaign if `trace` names all of them; a method without a file drafts
    for any target.
    """
    if like:
        return like.target, like.methods, like.draft_model
    methods = tuple(asked.method) or (Method.DRAFT,)
    needs_file = any(METHODS[method].loads == Loads.FILE for method in methods)
    if not needs_file and not asked.draft:
        return asked.target or first_target, methods, None
    if asked.target and asked.draft:
        return asked.target, methods, asked.draft
    named = asked.target or asked.draft
    what = f"pairs {named!r}" if named else f"drafts by {chain_name(methods)}"
    raise ConfigError(
        f"config: trace: no suite of this campaign {what}; name both trace.target and trace.draft"
    )


def _source(
    asked: TraceSettings, like: Block | None, config: Config
) -> tuple[PromptSource, Block | None]:
    """Return the prompt, and the block that says how it is sent; without one, as it is.

    It is the first whole text of the block that drafts alike, or the one that `trace` names there:
    a chat model that is sent raw text, or forced past its end, soon repeats itself.
    """
    texts = config.prompts.texts
    named = texts[asked.prompt].file if asked.prompt else None
    for source in like.prompts if like else ():
        if source.length is None and named in (None, source.file):
            return source, like
    name = asked.prompt or next(iter(texts))
    return PromptSource(name, texts[name].file), None


def _way(asked: TraceSettings, methods: Sequence[Method], draft: str | None) -> Drafting:
    known = parameters_of(methods) - {"history"}
    given = [name for name in ("gamma", *PARAMETERS) if name in asked.model_fields_set]
    for name in given:
        if name not in known:
            taken = ", ".join(sorted(known)) or "none"
            raise ConfigError(
                f"config: trace.{name}: {chain_name(methods)} ignores it; it takes {taken}"
            )
    if draft and all(METHODS[method].loads == Loads.NOTHING for method in methods):
        raise ConfigError(f"config: trace.draft: {chain_name(methods)} loads no file")
    values = {list_key(name): getattr(asked, name) for name in given}
    lists = {key: [value] for key, value in values.items() if value is not None}
    try:
        return Drafting(method=list(methods), drafts=[draft] if draft else [], **lists)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise ConfigError(f"config: {describe_fault(fault, ['trace.method'])}") from error
