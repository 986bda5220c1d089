"""Loading the configuration: every fault ends in one readable line.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from specmoe.config.all_methods import NOTHING_SAID, FilesSay, spell_out
from specmoe.config.base import describe_fault
from specmoe.config.block import ITSELF, NO_DRAFT, PASSAGE_PREFIX, Block, Protocol, Stop
from specmoe.config.drafting import Drafting
from specmoe.config.engines import PathEngine
from specmoe.config.expand_workloads import expand_workloads
from specmoe.config.matrix import comparison_of, left_out_blocks, list_blocks, suite_blocks
from specmoe.config.methods import Method, heeded, is_ngram
from specmoe.config.models import AnyModel, ConvertModel, NgramCache, SyntheticDraft, SyntheticModel
from specmoe.config.option_words import concerns_draft
from specmoe.config.profiles import expand_profiles, fault_of_lengths
from specmoe.config.schema import ALL, Config, Suite
from specmoe.config.synthetic_recipe import Recipe
from specmoe.config.trace_choice import choose_demonstration
from specmoe.config.workloads import TextsWorkload
from specmoe.errors import ConfigError, nearest

# Top-level keys of earlier releases, and their present names.
RENAMED = {"beside": "compare_with"}
# Keys of a suite that are gone, and why.
NO_BASELINE = "leave this key out: every block measures its target alone, beside the draft"

# Keys of earlier releases that are gone, by section, and why.
REMOVED = {
    "statistics": dict.fromkeys(
        ("resamples", "seed"), "intervals are Student's t and draw no resamples; remove this key"
    ),
}

# Bytes of the campaign's part of the configuration, which is a word of command lines: Linux takes
# 128 KiB. Shipped campaigns have 11 kB.
_LONGEST = 100_000

# Where pydantic adds the branch of a tagged union to the place of a fault.
_TAG_DEPTH = {"engines": 2, "model_sets": 3, "workloads": 2}
# What it adds where a value may be of several types.
_UNION_BRANCHES = ("list[", "literal[")


def load(
    data: Mapping[str, Any],
    root: Path,
    files_say: Callable[[Config], FilesSay] = lambda _: NOTHING_SAID,
) -> Config:
    """Return the checked configuration, with every suite's methods by name.

    `data` is the merged mapping that Snakemake read; prompt files and shipped models are relative
    to `root`, the workflow's folder; `files_say` returns what model files say of drafting. Raises
    ConfigError with the place of the first fault and the remedy.
    """
    _refuse_old_keys(data)
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error
    _check_names(config)
    _check_sources(config)
    _check_models_of_suites(config)
    config = spell_out(config, files_say(config))
    _check_workloads(config)
    config = expand_profiles(expand_workloads(config, root))
    _check_length(config)
    for name, suite in config.selected_suites.items():
        _check_suite(config, name, suite)
    _check_more_repeats(config)
    _check_left_out(config)
    _check_prompt_files(config, root)
    _check_trace(config)
    return config


def _refuse_old_keys(data: Mapping[str, Any]) -> None:
    """Refuse the keys of earlier releases with a line that says what replaces them."""
    for old, new in RENAMED.items():
        if old in data:
            _refuse(old, f"this key is now {new}")
    for section, gone in REMOVED.items():
        for key in gone.keys() & _mapping(data.get(section)):
            _refuse(f"{section}.{key}", gone[key])
    for name, suite in _mapping(data.get("suites")).items():
        if "baseline" in _mapping(suite):
            _refuse(f"suites.{name}.baseline", NO_BASELINE)


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _refuse(place: str, fault: str) -> NoReturn:
    raise ConfigError(f"config: {place}: {fault}")


def check_compare_with(config: Config, results: Path, root: Path) -> None:
    """Check that the campaigns to compare with have been rendered.

    `results` is the folder of all campaigns' results, `root` the workflow's. Raises ConfigError
    with the command that renders the first missing one.
    """
    for name in config.compare_with:
        analysis = results / name / "analysis"
        if not analysis.is_dir():
            overlays = [f"resources/campaigns/{name}/campaign.yaml", f"config/{name}.yaml"]
            known = [root / overlay for overlay in overlays if (root / overlay).is_file()]
            overlay = known[0] if known else f"<the configuration of {name}>"
            _refuse(
                "compare_with",
                f"there is no {analysis}; render campaign {name!r} first: snakemake --cores 1 paper"
                f" --configfile {overlay}",
            )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    tag = _TAG_DEPTH.get(str(fault["loc"][0])) if fault["loc"] else None
    keys = [
        str(part)
        for depth, part in enumerate(fault["loc"])
        if depth != tag and not str(part).startswith(_UNION_BRANCHES)
    ]
    if fault["type"] == "unexpected_keyword_argument":
        key = keys.pop()
        known = [field.name for field in dataclasses.fields(Recipe)]
        return f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
    return f"config: {describe_fault(fault, keys)}"


def _require(name: str, known: Iterable[str], place: str, what: str) -> None:
    known = list(known)
    if name not in known:
        _refuse(place, f"unknown {what} {name!r}; {nearest(name, known)}")


def _check_names(config: Config) -> None:
    campaign = config.campaign
    _require(campaign.engine, config.engines, "campaign.engine", "engine")
    _require(campaign.models, config.model_sets, "campaign.models", "model set")
    for suite in campaign.suites:
        _require(suite, config.suites, "campaign.suites", "suite")
        engine = config.suites[suite].engine
        if engine is not None:
            _require(engine, config.engines, f"suites.{suite}.engine", "engine")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        _refuse("compare_with", f"name each campaign once, and not this one, {campaign.name!r}")


def _check_length(config: Config) -> None:
    """Check that jobs can be given the campaign's part of the configuration."""
    sections = config.of_campaign().model_dump(mode="json")
    lengths = {name: len(json.dumps(section)) for name, section in sections.items()}
    if sum(lengths.values()) > _LONGEST:
        longest = max(lengths, key=lambda name: lengths[name])
        _refuse(
            longest,
            f"most of the campaign's {sum(lengths.values()) / 1e3:,.0f} kB of configuration are"
            f" here, and jobs are given {_LONGEST / 1e3:.0f} kB at most; shorten its lists and"
            " texts, or divide the campaign",
        )


def _check_sources(config: Config) -> None:
    """Check that every model has a known family, and that no model is made from itself."""
    models, engine = config.models, config.engine
    converts = not isinstance(engine, PathEngine) or engine.converter is not None
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        if model.family is not None:
            _require(model.family, config.families, f"{place}.family", "family")
        if isinstance(model, ConvertModel) and not converts:
            _refuse(
                place,
                f"engine {config.campaign.engine!r} has no converter; give it `converter`, a folder"
                " of llama.cpp's source, or name an engine built from source",
            )
        if isinstance(model, SyntheticDraft):
            _check_synthetic_draft(models, model, place)
        _check_made_from(config, name)
    for word, meaning in ((NO_DRAFT, "no draft"), (ITSELF, "the target")):
        if word in models:
            _refuse("model_sets", f"{word!r} means {meaning} and names no model")


def _check_models_of_suites(config: Config) -> None:
    for name, suite in config.selected_suites.items():
        for target in suite.targets:
            _require(target, config.models, f"suites.{name}.targets", "model")
        for draft in suite.drafts:
            known = [NO_DRAFT, ITSELF, *config.models]
            _require(draft, known, f"suites.{name}.drafts", "model")


def _check_made_from(config: Config, name: str) -> None:
    """Check that the models that one is made from exist, and that it is not among them."""
    seen = [name]
    while source := config.models[seen[-1]].made_from:
        key = "tokenizer" if isinstance(config.models[seen[-1]], NgramCache) else "source"
        place = f"model_sets.{config.campaign.models}.{seen[-1]}.{key}"
        _require(source, config.models, place, "model")
        if source in seen:
            _refuse(place, f"{source!r} is made from itself")
        seen.append(source)


def _check_synthetic_draft(
    models: Mapping[str, AnyModel], draft: SyntheticDraft, place: str
) -> None:
    """Check that a draft's target has a recipe that such a draft can be constructed from."""
    _require(draft.target, models, f"{place}.target", "model")
    target = models[draft.target]
    if not isinstance(target, SyntheticModel):
        _refuse(f"{place}.target", f"{draft.target!r} is not of kind synthetic")
    if target.recipe.first_full_attention is None:
        _refuse(f"{place}.target", f"the core of {draft.target!r} has no layer of full attention")
    if target.recipe.hidden % target.recipe.head_size:
        _refuse(f"{place}.target", f"{draft.target!r}: hidden is no multiple of head_size")


def _check_suite(config: Config, name: str, suite: Suite) -> None:
    place = f"suites.{name}"
    _check_ways(config, name, suite)
    _check_options(config, name, suite)
    for prompt in suite.prompts:
        _require(prompt, config.prompts.texts, f"{place}.prompts", "prompt")
    _check_prompts(config, name, suite)
    _check_engine(config, name)
    blocks = suite_blocks(config, name)
    _check_block_prompts(blocks[0], place)
    _check_concurrency(config, name, len(blocks[0].prompts))
    sides = [side for block in blocks for side in block.sides]
    gamma = max((side.longest for side in sides), default=0)
    generated = config.measurement.n_predict + gamma
    if generated >= config.measurement.context:
        _refuse(
            f"{place}.gammas",
            f"γ = {gamma} and measurement.n_predict = {config.measurement.n_predict} do not fit"
            f" measurement.context = {config.measurement.context}, whatever the prompt",
        )
    longest = max(suite.prompt_lengths, default=0)
    if longest + generated >= config.measurement.context:
        _refuse(
            f"{place}.prompt_lengths",
            f"{longest} tokens and the generated ones do not fit measurement.context ="
            f" {config.measurement.context}",
        )


def _check_options(config: Config, name: str, suite: Suite) -> None:
    """Check that a suite's options of the engine differ, and that something heeds them."""
    place = f"suites.{name}.engine_options"
    settings = config.option_settings(name)
    if len({(setting.text, setting.concurrency) for setting in settings}) < len(settings):
        _refuse(place, "two entries are the same")
    if config.protocol_of(name) == Protocol.PUBLISHED and any(one.text for one in settings):
        _refuse(place, "the commands of protocol published take no options of the engine")
    models_draft = any(not is_ngram(way.method[-1]) for way in suite.ways)
    own = {key for entry in suite.engine_options for key in entry.given()}
    of_draft = sorted(filter(concerns_draft, own))
    if of_draft and not models_draft:
        _refuse(place, f"{of_draft[0]} is of a draft, and no model drafts in this suite")


def _check_concurrency(config: Config, name: str, prompts: int) -> None:
    """Check that a suite can be measured with several requests at once, if it asks for that."""
    suite = config.suites[name]
    place = f"suites.{name}.concurrency"
    if not suite.concurrency:
        return
    if config.protocol_of(name) == Protocol.PUBLISHED:
        _refuse(place, "the commands of protocol published generate one text at a time")
    for way in suite.ways:
        if "history" in heeded(way.method):
            _refuse(
                place,
                f"{way.name} keeps what it saw of one request for the others, so requests at once"
                " would draft for each other; give it a suite of its own",
            )
    if prompts < max(suite.concurrency):
        _refuse(
            place,
            f"{max(suite.concurrency)} clients need as many prompts at least, to be busy at once,"
            f" and this suite has {prompts}; several times as many make a steady load",
        )


def _check_ways(config: Config, name: str, suite: Suite) -> None:
    """Check what relates a suite's ways of drafting to its models, its γ and its protocol."""
    place = f"suites.{name}"
    if not suite.drafts and not suite.methods:
        _refuse(
            place, "name in `drafts` or `methods` what drafts; `drafts: [none]` if nothing does"
        )
    assert suite.methods != ALL  # spelled out by now
    for number, way in enumerate(suite.methods):
        _check_method(config, name, way, f"{place}.methods.{number}")
    pairs = Counter(
        (target, way.drafter_id(draft or None))
        for way in suite.ways
        for target, draft in product(way.targets or suite.targets, way.drafts or [""])
    )
    for (target, draft), times in pairs.items():
        if times > 1:
            fault = f"{draft} drafts for {target} twice; put its parameters into one entry"
            _refuse(f"{place}.methods", fault)
    _check_profiles(config, name)
    for way in suite.ways:
        if way.heeds_gamma and not way.gammas and not suite.gammas:
            _refuse(f"{place}.gammas", f"a suite that drafts needs at least one γ, for {way.name}")
        never_drafts = way.fault_of_lengths(suite.gammas)
        if never_drafts:
            _refuse(place, never_drafts)


def _check_profiles(config: Config, name: str) -> None:
    """Check that the profiles of a suite can be imposed, and can be told apart."""
    suite, place = config.suites[name], f"suites.{name}.imposed_profiles"
    if suite.imposed_profiles and config.protocol_of(name) == Protocol.PUBLISHED:
        _refuse(place, "protocol published imposes nothing")
    for shared, times in Counter(one.name for one in suite.imposed_profiles).items():
        if times > 1:
            _refuse(place, f"{times} profiles have the name {shared!r}")
    for way, profile in product(suite.ways, suite.imposed_profiles):
        longest = max((setting["gamma"] for setting in way.settings(suite.gammas)), default=0)
        if fault := fault_of_lengths(profile, longest):
            _refuse(place, fault)


def _check_method(config: Config, name: str, way: Drafting, place: str) -> None:
    """Check one entry of a suite's `methods` by itself."""
    suite = config.suites[name]
    for target in way.targets:
        _require(target, suite.targets, f"{place}.targets", "target of the suite")
    itself = [ITSELF] if way.method == [Method.DRAFT] else []
    for draft in way.drafts:
        _require(draft, [*itself, *config.models], f"{place}.drafts", "model")
    if config.protocol_of(name) == Protocol.PUBLISHED:
        _refuse(place, "protocol published knows draft models alone; name them in `drafts`")
    if suite.imposes and is_ngram(way.method[0]):
        _refuse(
            place,
            f"{way.name} drafts where text repeats, so acceptance that is imposed says nothing of"
            " it; give it a suite of its own",
        )


def _check_engine(config: Config, name: str) -> None:
    """Check that the campaign's own engine measures every suite of protocol paired.

    The audit asks that engine about runs that diverge from their baselines.
    """
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED and engine != config.campaign.engine:
        _refuse(
            f"suites.{name}.engine",
            f"{engine!r} measures by protocol published alone; for protocol paired give it a"
            " campaign of its own",
        )


def _check_more_repeats(config: Config) -> None:
    """Check that the comparisons with more repeats exist."""
    if not config.measurement.more_repeats:
        return
    known = {comparison_of(block.block) for block in list_blocks(config, gpu=False)}
    for name in config.measurement.more_repeats:
        _require(name, sorted(known), "measurement.more_repeats", "comparison")


def _check_left_out(config: Config) -> None:
    """Check that what is left out exists, and that every suite and the first repeat keep a block.

    The first repeat describes the machine for all others.
    """
    if not config.campaign.left_out:
        return
    place = "campaign.left_out"
    left, out = list_blocks(config, gpu=False), left_out_blocks(config)
    known = {block.block for block in [*left, *out]}
    known |= {comparison_of(block) for block in known}
    for name in config.campaign.left_out:
        _require(name, sorted(known), place, "block or comparison")
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in left):
            _refuse(place, f"nothing of suite {suite} is left; take it out of campaign.suites")
    if all(block.repeat for block in left):
        _refuse(place, "no block of the first repeat is left, and it describes the machine")


def _check_prompts(config: Config, name: str, suite: Suite) -> None:
    place = f"suites.{name}"
    published = config.protocol_of(name) == Protocol.PUBLISHED
    if published and suite.prompts and NO_DRAFT in suite.drafts:
        fault = "protocol published has no baselines on texts; give prompt_lengths"
        _refuse(f"{place}.prompts", fault)
    if not suite.prompts and not suite.prompt_lengths and not suite.workloads:
        _refuse(place, "name at least one of prompts, workloads and prompt_lengths")
    stops = [config.stops_of(name, target) for target in suite.targets]
    if any(len(of_target) > 1 for of_target in stops):
        fault = "all prompts of a suite stop alike; give those of another `stop` a suite of its own"
        _refuse(place, fault)
    if published and (suite.workloads or {Stop.EOS} in stops):
        fault = "protocol published knows neither workloads nor `stop: eos`"
        _refuse(place, fault)
    if suite.imposes and {Stop.EOS} in stops:
        key = "imposed_acceptance" if suite.imposed_acceptance else "imposed_profiles"
        fault = "text of imposed acceptance is not the target's and ends anywhere; use stop: length"
        _refuse(f"{place}.{key}", fault)


def _check_block_prompts(block: Block, place: str) -> None:
    """Check that the prompts of a suite's blocks have ids of their own and fit a command line."""
    counted = Counter(source.prompt for source in block.prompts)
    for prompt, times in counted.items():
        if times > 1:
            _refuse(f"{place}.workloads", f"{times} prompts of this suite have the id {prompt!r}")
    if len(block.to_json()) > _LONGEST:
        _refuse(
            f"{place}.workloads",
            f"{len(block.prompts)} prompts are more than a job can be given; sample fewer, or"
            " divide them among suites",
        )


def _check_workloads(config: Config) -> None:
    """Check that the suites' workloads exist, that their texts do, and that ids stay unique."""
    for suite_name, suite in config.selected_suites.items():
        for name in suite.workloads:
            _require(name, config.workloads, f"suites.{suite_name}.workloads", "workload")
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX):
            _refuse("workloads", f"{name!r} names prompts of exact length; take another name")
        if name in config.prompts.texts:
            _refuse("workloads", f"{name!r} is a text of prompts.texts; take another name")
        texts = workload.texts if isinstance(workload, TextsWorkload) else []
        for text in texts:
            _require(text, config.prompts.texts, f"workloads.{name}.texts", "prompt")
        if len(set(texts)) < len(texts):
            _refuse(f"workloads.{name}.texts", "a text is named twice")


def _check_prompt_files(config: Config, root: Path) -> None:
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    files |= {
        f"model_sets.{config.campaign.models}.{name}.text": model.text
        for name, model in config.models.items()
        if isinstance(model, NgramCache)
    }
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            _refuse(place, f"no file {file!r} in the workflow's folder")


def _check_trace(config: Config) -> None:
    """Check that the names in `trace` exist and that the campaign can decode them."""
    asked = config.trace
    for key, model in (("target", asked.target), ("draft", asked.draft)):
        if model is not None:
            _require(model, config.models, f"trace.{key}", "model")
    if asked.prompt is not None:
        _require(asked.prompt, config.prompts.texts, "trace.prompt", "prompt")
    named = asked.target or asked.draft or asked.method
    if named and config.campaign.source == "published":
        _refuse("trace", "a published campaign has rows and no models to decode with")
    if asked.model_fields_set:
        choose_demonstration(config, gpu=False)
