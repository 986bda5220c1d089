"""Checks across the configuration's keys, and of the files that it names.

Each check yields an error's place and what is wrong there; `config.load.load` groups them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path

from specmoe.config import matrix
from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, SELF, Protocol, Stop
from specmoe.config.methods import METHODS, Drafting, Method, is_ngram
from specmoe.config.models import NgramCache, SyntheticDraft, SyntheticModel, families
from specmoe.config.schema import Config, Suite
from specmoe.config.workloads import TextsWorkload
from specmoe.errors import ConfigError, listed, nearest

Errors = Iterator[tuple[str, str]]
"""Places, such as the key of a suite or none for the suite as a whole; and what is wrong there."""

# Bytes of the campaign's part of the configuration, which the rule `record_campaign` has in its
# command line: Linux takes 128 KiB. Shipped campaigns have 11 kB.
LONGEST = 100_000


def stop_at(*checks: Errors) -> None:
    """Raise ConfigError with a line for each error that checks find."""
    if errors := list(dict.fromkeys(chain.from_iterable(checks))):
        raise ConfigError(listed([f"config: {place}: {error}" for place, error in errors]))


def unknown(names: Iterable[str | None], known: Collection[str], place: str, what: str) -> Errors:
    """Yield the error of each name that is not among the known ones; None names nothing."""
    for name in names:
        if name is not None and name not in known:
            yield place, f"unknown {what} {name!r}; {nearest(name, known)}"


def names(config: Config) -> Errors:
    """Check what the campaign names."""
    campaign = config.campaign
    yield from unknown([campaign.engine], config.engines, "campaign.engine", "engine")
    yield from unknown([campaign.models], config.model_sets, "campaign.models", "model set")
    yield from unknown(campaign.suites, config.suites, "campaign.suites", "suite")
    models = [model for models in config.model_sets.values() for model in models]
    named = campaign.compare_with_study.values()
    yield from unknown(named, models, "campaign.compare_with_study", "model")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        yield "compare_with", f"name each campaign once, and not this one, {campaign.name!r}"


def members(config: Config) -> Errors:
    """Check what suites, models and workloads name."""
    models, texts = config.models, config.prompts.texts
    for name, suite in config.selected_suites.items():
        drafts, place = [NO_DRAFT, SELF, *models], f"suites.{name}"
        yield from unknown([suite.engine], config.engines, f"{place}.engine", "engine")
        yield from unknown(suite.targets, models, f"{place}.targets", "model")
        yield from unknown(suite.drafts, drafts, f"{place}.drafts", "model")
        yield from unknown(suite.workloads, config.workloads, f"{place}.workloads", "workload")
        named = (prompt for prompt in suite.prompts if isinstance(prompt, str))
        yield from unknown(named, texts, f"{place}.prompts", "prompt")
    for word in {NO_DRAFT, SELF} & models.keys():
        yield "model_sets", f"{word!r} has a meaning among drafts and names no model"
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        yield from unknown([model.family], families(), f"{place}.family", "family")
        yield from _of_source(config, name, f"{place}.source")
        if isinstance(model, SyntheticDraft):
            yield from _of_target(config, model, f"{place}.target")
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX) or name in texts:
            yield "workloads", f"{name!r} is a prompt's name; take another one"
        if isinstance(workload, TextsWorkload):
            yield from unknown(workload.texts, texts, f"workloads.{name}.texts", "prompt")


def _of_source(config: Config, name: str, place: str) -> Errors:
    """Check what a model is made from, and that this is not the model itself in the end."""
    models, seen = config.models, [name]
    yield from unknown([models[name].made_from], models, place, "model")
    while (source := models[seen[-1]].made_from) in models and source not in seen:
        seen.append(source)
    if source in seen:
        yield place, f"{source!r} is made from itself"


def _of_target(config: Config, draft: SyntheticDraft, place: str) -> Errors:
    """Check that a draft model's target has a recipe to construct it from."""
    target = config.models.get(draft.target)
    yield from unknown([draft.target], config.models, place, "model")
    if target is not None and not isinstance(target, SyntheticModel):
        yield place, f"{draft.target!r} is not of kind synthetic"
    elif target is not None and target.recipe.first_full_attention is None:
        yield place, f"the core of {draft.target!r} has no layer of full attention"
    elif target is not None and target.recipe.hidden % target.recipe.head_size:
        yield place, f"{draft.target!r}: hidden is no multiple of head_size"


def files(config: Config, root: Path) -> Errors:
    """Check that the texts which the configuration names are there."""
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    files["prompts.passage"] = config.prompts.passage
    for name, model in config.models.items():
        if isinstance(model, NgramCache):
            files[f"model_sets.{config.campaign.models}.{name}.text"] = model.text
    for place, file in files.items():
        if not (root / file).is_file():
            yield place, f"no file {file!r} in the workflow's folder"


def length(config: Config) -> Errors:
    """Check that jobs can be given the campaign's part of the configuration."""
    if (size := len(config.of_campaign().model_dump_json())) > LONGEST:
        yield (
            "top level",
            f"the campaign's part has {size / 1e3:,.0f} kB, and jobs are given"
            f" {LONGEST / 1e3:.0f} kB at most; shorten its lists and texts, or divide the campaign",
        )


def repeats_and_excluded(config: Config) -> Errors:
    """Check that what is repeated or left out exists, and what is left to measure.

    Every suite keeps a block, and so does the first repeat: it describes the machine for all
    others.
    """
    measured, place = matrix.list_blocks(config, gpu=False), "campaign.exclude"
    known = sorted({matrix.comparison_of(block.block) for block in measured})
    more = config.measurement.more_repeats
    yield from unknown(more, known, "measurement.more_repeats", "comparison")
    if not config.campaign.exclude:
        return
    every = [*measured, *matrix.excluded_blocks(config)]
    known = sorted({name for b in every for arm in b.arms for name in matrix.names_of(b, arm)})
    yield from unknown(config.campaign.exclude, known, place, "block, comparison or setting")
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in measured):
            yield place, f"nothing of suite {suite} is left; take it out of campaign.suites"
    if all(block.repeat for block in measured):
        yield place, "no block of the first repeat is left, and it describes the machine"


def suite(config: Config, name: str) -> Errors:
    """Yield the errors that the first check finds which finds any: the next one builds on it."""
    for check in (_of_ways, _of_protocol, _of_prompts, _of_blocks):
        if errors := [*check(config, name, config.suites[name])]:
            yield from ((f"suites.{name}.{key}".rstrip("."), error) for key, error in errors)
            return


def _of_ways(config: Config, name: str, suite: Suite) -> Errors:
    for number, way in enumerate(suite.methods):
        assert isinstance(way, Drafting)  # spelled out by now
        here = f"methods.{number}"
        yield from unknown(way.targets, suite.targets, f"{here}.targets", "target of the suite")
        known = [*([SELF] if way.method == Method.DRAFT else []), *config.models]
        yield from unknown(way.drafts, known, f"{here}.drafts", "model")
    if not suite.drafts and not suite.methods:
        yield "", "name a draft model or a method; `drafts: [none]` measures the baselines"
    for way in suite.ways:
        if "gamma" in METHODS[way.method].flags and not way.gammas and not suite.gammas:
            yield "gammas", f"a suite that drafts needs at least one γ, for {way.method}"
        # common/ngram-map.cpp, `common_ngram_simple_draft`
        if way.method == Method.NGRAM_SIMPLE and any(
            setting["gamma"] < setting["n_match"] for setting in way.settings(suite.gammas)
        ):
            yield "methods", f"{way.method} never drafts with a γ below n_match"
        # What the suite varies in vain beside this way, and why.
        by_text, remembers = is_ngram(way.method), METHODS[way.method].remembers
        apart = {
            "forced_acceptance": by_text and "drafts where text repeats, whatever is accepted",
            "requests": remembers and "keeps what it saw of one request for the others",
        }
        for factor in suite.vary.keys() & {key for key, why in apart.items() if why}:
            why = f"{way.method} {apart[factor]}; give it a suite of its own"
            yield f"vary.{factor}", why


def _of_protocol(config: Config, name: str, suite: Suite) -> Errors:
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED:
        # The audit asks the campaign's engine about runs that diverge from their baselines.
        if engine != config.campaign.engine:
            error = "measures by protocol study alone; for paired give it its own campaign"
            yield "engine", f"{engine!r} {error}"
        return
    options = {*suite.vary} - {"prompt_tokens", "temperature"} or config.measurement.engine_args
    texts = any(isinstance(prompt, str) for prompt in suite.prompts)
    baselines = texts and NO_DRAFT in suite.drafts
    ends = suite.workloads or config.measurement.stop == Stop.EOS
    for key, given, error in [
        ("methods", suite.methods, "knows draft models alone; name them in `drafts`"),
        ("vary", options, "takes no engine_args, and varies prompt_tokens or temperature"),
        ("prompts", baselines, "has no baselines on texts; give lengths"),
        ("", ends, "knows neither workloads nor `stop: eos`"),
    ]:
        if given:
            yield key, f"protocol study {error}"


def _of_prompts(config: Config, name: str, suite: Suite) -> Errors:
    sent = [*suite.prompts, *suite.workloads]
    if ("prompt_tokens" in suite.vary) == bool(sent):
        yield "", "name prompts or workloads, or vary prompt_tokens in their place"
    stops = config.stops_of(name)
    if len(stops) > 1:
        yield "", "all prompts of a suite stop alike; give those of another `stop` another suite"
    if "forced_acceptance" in suite.vary and Stop.EOS in stops:
        yield "vary.forced_acceptance", "its text ends anywhere; use stop: length"


def _of_blocks(config: Config, name: str, suite: Suite) -> Errors:
    measurement, blocks = config.measurement, matrix.suite_blocks(config, name)
    prompts = blocks[0].prompts
    first = [block for block in blocks if block.repeat == 0]
    settings = Counter(matrix.setting_of(block, arm) for block in first for arm in block.arms)
    [(setting, times)] = settings.most_common(1)
    if times > 1:
        # Whatever finds runs by their names would find the last.
        yield "", f"two settings have the name {setting!r}; their values differ too little for two"
    if len(prompts) < (clients := max(block.concurrency or 0 for block in blocks)):
        yield (
            "vary.requests",
            f"{clients} clients need as many prompts at least, to be busy at once, and this suite"
            f" has {len(prompts)}; several times as many make a steady load",
        )
    gamma = max(arm.gamma for block in blocks for arm in block.arms)
    longest = max(source.length or 0 for source in prompts)
    if longest + measurement.n_predict + gamma >= measurement.context:
        yield (
            "",
            f"measurement.context = {measurement.context} does not hold {longest} tokens of a"
            f" passage, measurement.n_predict = {measurement.n_predict} and γ = {gamma}",
        )
