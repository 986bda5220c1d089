"""What relates the configuration's keys to each other, and to the files it names.

Each check yields a fault's place and what is wrong there. They come in groups, see
`config.load.load`: where one finds faults, the later ones would stumble over them.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path

from specmoe.config.block import ITSELF, NO_DRAFT, PASSAGE_PREFIX, Protocol, Stop
from specmoe.config.matrix import (
    comparison_of,
    left_out_blocks,
    list_blocks,
    names_of,
    setting_of,
    suite_blocks,
)
from specmoe.config.methods import METHODS, Drafting, Method, is_ngram
from specmoe.config.models import NgramCache, SyntheticDraft, SyntheticModel
from specmoe.config.schema import Config, Suite
from specmoe.config.workloads import TextsWorkload
from specmoe.errors import ConfigError, listed, nearest

Faults = Iterator[tuple[str, str]]
"""Places, such as the key of a suite or none for the suite as a whole; and what is wrong there."""

# Bytes of the campaign's part of the configuration, which the rule `record_campaign` has in its
# command line: Linux takes 128 KiB. Shipped campaigns have 11 kB.
LONGEST = 100_000


def stop_at(*checks: Faults) -> None:
    """Raise ConfigError with a line for each fault that checks find."""
    if faults := list(dict.fromkeys(chain.from_iterable(checks))):
        raise ConfigError(listed([f"config: {place}: {fault}" for place, fault in faults]))


def unknown(names: Iterable[str | None], known: Collection[str], place: str, what: str) -> Faults:
    """Yield the fault of each name that is not among the known ones; None names nothing."""
    for name in names:
        if name is not None and name not in known:
            yield place, f"unknown {what} {name!r}; {nearest(name, known)}"


def names(config: Config) -> Faults:
    """Check what the campaign names."""
    campaign = config.campaign
    yield from unknown([campaign.engine], config.engines, "campaign.engine", "engine")
    yield from unknown([campaign.models], config.model_sets, "campaign.models", "model set")
    yield from unknown(campaign.suites, config.suites, "campaign.suites", "suite")
    for name in filter(config.suites.__contains__, campaign.suites):
        engine = config.suites[name].engine
        yield from unknown([engine], config.engines, f"suites.{name}.engine", "engine")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        yield "compare_with", f"name each campaign once, and not this one, {campaign.name!r}"


def members(config: Config) -> Faults:
    """Check what suites and the demonstration name, then models and workloads."""
    models, asked = config.models, config.trace
    for name, suite in config.selected_suites.items():
        drafts, place = [NO_DRAFT, ITSELF, *models], f"suites.{name}"
        yield from unknown(suite.targets, models, f"{place}.targets", "model")
        yield from unknown(suite.drafts, drafts, f"{place}.drafts", "model")
        yield from unknown(suite.workloads, config.workloads, f"{place}.workloads", "workload")
    yield from unknown([asked.target], models, "trace.target", "model")
    yield from unknown([asked.draft], models, "trace.draft", "model")
    yield from unknown([asked.prompt], config.prompts.texts, "trace.prompt", "prompt")
    if (asked.target or asked.draft) and config.campaign.source == "published":
        yield "trace", "a published campaign has rows and no models to decode with"
    yield from _models(config)
    yield from _workloads(config)


def _workloads(config: Config) -> Faults:
    texts = config.prompts.texts
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX):
            yield "workloads", f"{name!r} names prompts of exact length; take another name"
        if name in texts:
            yield "workloads", f"{name!r} is a text of prompts.texts; take another name"
        if isinstance(workload, TextsWorkload):
            yield from unknown(workload.texts, texts, f"workloads.{name}.texts", "prompt")


def _models(config: Config) -> Faults:
    for word, meaning in ((NO_DRAFT, "no draft"), (ITSELF, "the target")):
        if word in config.models:
            yield "model_sets", f"{word!r} means {meaning} and names no model"
    for name, model in config.models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        yield from unknown([model.family], config.families, f"{place}.family", "family")
        if isinstance(model, SyntheticDraft):
            yield from _synthetic_draft(config, model, f"{place}.target")
        if model.made_from is not None:
            yield from _made_from(config, name, f"{place}.{model.source_key}")


def _made_from(config: Config, name: str, place: str) -> Faults:
    """Check what a model is made from, and that this is not the model itself in the end."""
    source, seen = config.models[name].made_from, {name}
    yield from unknown([source], config.models, place, "model")
    while source in config.models:
        if source in seen:
            yield place, f"{source!r} is made from itself"
            return
        seen.add(source)
        source = config.models[source].made_from


def _synthetic_draft(config: Config, draft: SyntheticDraft, place: str) -> Faults:
    """Check that a draft's target has a recipe that such a draft can be constructed from."""
    target = config.models.get(draft.target)
    yield from unknown([draft.target], config.models, place, "model")
    if target is not None and not isinstance(target, SyntheticModel):
        yield place, f"{draft.target!r} is not of kind synthetic"
    elif target is not None and target.recipe.first_full_attention is None:
        yield place, f"the core of {draft.target!r} has no layer of full attention"
    elif target is not None and target.recipe.hidden % target.recipe.head_size:
        yield place, f"{draft.target!r}: hidden is no multiple of head_size"


def files(config: Config, root: Path) -> Faults:
    """Check that the texts which the configuration names are there."""
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    files |= {
        f"model_sets.{config.campaign.models}.{name}.text": model.text
        for name, model in config.models.items()
        if isinstance(model, NgramCache)
    }
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            yield place, f"no file {file!r} in the workflow's folder"


def length(config: Config) -> Faults:
    """Check that jobs can be given the campaign's part of the configuration."""
    sections = config.of_campaign().model_dump(mode="json")
    lengths = {name: len(json.dumps(section)) for name, section in sections.items()}
    if sum(lengths.values()) > LONGEST:
        longest = max(lengths, key=lambda name: lengths[name])
        yield (
            longest,
            f"most of the campaign's {sum(lengths.values()) / 1e3:,.0f} kB of configuration are"
            f" here, and jobs are given {LONGEST / 1e3:.0f} kB at most; shorten its lists and"
            " texts, or divide the campaign",
        )


def repeats_and_left_out(config: Config) -> Faults:
    """Check that what is repeated or left out exists, and what is left to measure.

    Every suite keeps a block, and so does the first repeat: it describes the machine for all
    others.
    """
    measured, place = list_blocks(config, gpu=False), "campaign.left_out"
    known = sorted({comparison_of(block.block) for block in measured})
    more = config.measurement.more_repeats
    yield from unknown(more, known, "measurement.more_repeats", "comparison")
    if not config.campaign.left_out:
        return
    sides = [
        (block, side) for block in [*measured, *left_out_blocks(config)] for side in block.sides
    ]
    known = sorted({name for block, side in sides for name in names_of(block, side)})
    what = "block, comparison or setting"
    yield from unknown(config.campaign.left_out, known, place, what)
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in measured):
            yield place, f"nothing of suite {suite} is left; take it out of campaign.suites"
    if all(block.repeat for block in measured):
        yield place, "no block of the first repeat is left, and it describes the machine"


def suite(config: Config, name: str) -> Faults:
    """Yield the faults that the first check finds which finds any: the next one builds on it.

    The suite's models and workloads exist.
    """
    for check in (_of_ways, _of_protocol, _of_prompts, _of_blocks):
        if faults := [*check(config, name, config.suites[name])]:
            yield from ((f"suites.{name}.{key}".rstrip("."), fault) for key, fault in faults)
            return


def _of_ways(config: Config, name: str, suite: Suite) -> Faults:
    for number, way in enumerate(suite.methods):
        assert isinstance(way, Drafting)  # spelled out by now
        here = f"methods.{number}"
        yield from unknown(way.targets, suite.targets, f"{here}.targets", "target of the suite")
        known = [*([ITSELF] if way.method == Method.DRAFT else []), *config.models]
        yield from unknown(way.drafts, known, f"{here}.drafts", "model")
    named = [prompt for prompt in suite.prompts if isinstance(prompt, str)]
    yield from unknown(named, config.prompts.texts, "prompts", "prompt")
    if not suite.drafts and not suite.methods:
        yield "", "name a draft or a method; `drafts: [none]` measures the targets alone"
    for way in suite.ways:
        if way.takes_gamma and not way.gammas and not suite.gammas:
            yield "gammas", f"a suite that drafts needs at least one γ, for {way.method}"
        if fault := way.fault_of_lengths(suite.gammas):
            yield "", fault
        if "forced_acceptance" in suite.vary and is_ngram(way.method):
            yield (
                "methods",
                f"{way.method} drafts where text repeats, so acceptance that is forced says"
                " nothing of it; give it a suite of its own",
            )
        if "requests" in suite.vary and METHODS[way.method].remembers:
            yield (
                "vary.requests",
                f"{way.method} keeps what it saw of one request for the others, so requests at once"
                " would draft for each other; give it a suite of its own",
            )


def _of_protocol(config: Config, name: str, suite: Suite) -> Faults:
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED:
        # The audit asks the campaign's engine about runs that diverge from their baselines.
        if engine != config.campaign.engine:
            yield (
                "engine",
                f"{engine!r} measures by protocol published alone; for protocol paired give it a"
                " campaign of its own",
            )
        return
    options = {*suite.vary} - {"prompt_tokens", "temperature"} or config.measurement.engine_args
    texts = any(isinstance(prompt, str) for prompt in suite.prompts)
    baselines = texts and NO_DRAFT in suite.drafts
    ends = suite.workloads or config.measurement.stop == Stop.EOS
    for key, given, fault in [
        ("methods", suite.methods, "knows draft models alone; name them in `drafts`"),
        ("vary", options, "takes no engine_args, and varies prompt_tokens or temperature"),
        ("prompts", baselines, "has no baselines on texts; give lengths"),
        ("", ends, "knows neither workloads nor `stop: eos`"),
    ]:
        if given:
            yield key, f"protocol published {fault}"


def _of_prompts(config: Config, name: str, suite: Suite) -> Faults:
    sent = [*suite.prompts, *suite.workloads]
    if "prompt_tokens" in suite.vary and sent:
        yield "vary.prompt_tokens", f"they are the suite's prompts; leave out {sent[0]}"
    if "prompt_tokens" not in suite.vary and not sent:
        yield "", "name at least one of prompts and workloads, or vary prompt_tokens"
    stops = config.stops_of(name)
    if len(stops) > 1:
        yield (
            "",
            "all prompts of a suite stop alike; give those of another `stop` a suite of its own",
        )
    if "forced_acceptance" in suite.vary and Stop.EOS in stops:
        yield (
            "vary.forced_acceptance",
            "text of forced acceptance is not the target's and ends anywhere; use stop: length",
        )


def _of_blocks(config: Config, name: str, suite: Suite) -> Faults:
    measurement, blocks = config.measurement, suite_blocks(config, name)
    prompts = blocks[0].prompts
    first = [block for block in blocks if block.repeat == 0]
    settings = Counter(setting_of(block, side) for block in first for side in block.sides)
    for setting in (name for name, times in settings.items() if times > 1):
        # Whatever finds runs by their names would find the last.
        yield "", f"two settings have the name {setting!r}; their values differ too little for two"
    ids = Counter(source.prompt for source in prompts)
    for prompt in (name for name, times in ids.items() if times > 1):
        yield "workloads", f"two prompts of this suite have the id {prompt!r}"
    if len(prompts) < (clients := max(block.concurrency or 0 for block in blocks)):
        yield (
            "vary.requests",
            f"{clients} clients need as many prompts at least, to be busy at once, and this suite"
            f" has {len(prompts)}; several times as many make a steady load",
        )
    gamma = max(side.gamma for block in blocks for side in block.sides)
    generated = measurement.n_predict + gamma
    if generated >= measurement.context:
        yield (
            "gammas",
            f"γ = {gamma} and measurement.n_predict = {measurement.n_predict} do not fit"
            f" measurement.context = {measurement.context}, whatever the prompt",
        )
    longest = max(source.length or 0 for source in prompts)
    if longest and longest + generated >= measurement.context:
        yield (
            "prompts",
            f"{longest} tokens and the generated ones do not fit measurement.context ="
            f" {measurement.context}",
        )
