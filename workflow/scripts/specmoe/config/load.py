"""Reading the configuration: one readable line for everything that is wrong with it.

`load` is called by the Snakefile before any rule is defined, so a wrong name never reaches the DAG.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from specmoe.config.base import describe_fault
from specmoe.config.block import ITSELF, NO_DRAFT, Protocol
from specmoe.config.matrix import cell_of, list_blocks
from specmoe.config.models import ConvertModel, QuantizeModel
from specmoe.config.schema import Config, GitEngine, PathEngine, PypiEngine, Suite
from specmoe.config.synthetic_recipe import Recipe
from specmoe.config.trace_choice import choose_demonstration
from specmoe.errors import ConfigError, nearest

# Keys of earlier releases by their place, and what they are called now.
RENAMED = {"beside": "compare_with"}

# Keys of the tagged unions: pydantic adds the branch it took to the place of a fault.
_TAG_DEPTH = {"engines": 2, "model_sets": 3}


def load(data: Mapping[str, Any], root: Path) -> Config:
    """Return the checked configuration.

    `data` is the merged mapping Snakemake read; `root` is the workflow's folder, where prompt
    files lie. Raises ConfigError with the place of the first fault and the way out of it.
    """
    _refuse_renamed(data)
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error
    _check_names(config)
    _check_sources(config)
    for name, suite in config.selected_suites.items():
        _check_suite(config, name, suite)
    for name, suite in config.selected_suites.items():
        _check_baseline(config, name, suite)
    _check_more_repeats(config)
    _check_prompt_files(config, root)
    _check_trace(config)
    return config


def _refuse_renamed(data: Mapping[str, Any]) -> None:
    """Refuse a key of an earlier release with one line that has its new name."""
    for old, new in RENAMED.items():
        *sections, key = old.split(".")
        section: Any = data
        for name in sections:
            section = section.get(name) if isinstance(section, Mapping) else None
        if isinstance(section, Mapping) and key in section:
            raise ConfigError(f"config: {old}: this key is now {new}")


def check_compare_with(config: Config, results: Path, root: Path) -> None:
    """Check that the campaigns set beside this one were rendered before.

    `results` is the folder of all campaigns' results, `root` the workflow's. Raises ConfigError
    with the command that renders the first which was not.
    """
    for name in config.compare_with:
        analysis = results / name / "analysis"
        if not analysis.is_dir():
            overlays = [f"resources/campaigns/{name}/campaign.yaml", f"config/{name}.yaml"]
            known = [root / overlay for overlay in overlays if (root / overlay).is_file()]
            overlay = known[0] if known else f"<the configuration of {name}>"
            raise ConfigError(
                f"config: compare_with: there is no {analysis}; render campaign {name!r} first:"
                f" snakemake --cores 1 paper --configfile {overlay}"
            )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    tag = _TAG_DEPTH.get(str(fault["loc"][0])) if fault["loc"] else None
    keys = [str(part) for depth, part in enumerate(fault["loc"]) if depth != tag]
    if fault["type"] == "unexpected_keyword_argument":
        key = keys.pop()
        known = [field.name for field in dataclasses.fields(Recipe)]
        return f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
    return f"config: {describe_fault(fault, keys)}"


def _require(name: str, known: Iterable[str], place: str, what: str) -> None:
    known = list(known)
    if name not in known:
        raise ConfigError(f"config: {place}: unknown {what} {name!r}; {nearest(name, known)}")


def _check_names(config: Config) -> None:
    campaign = config.campaign
    _require(campaign.engine, config.engines, "campaign.engine", "engine")
    _require(campaign.models, config.model_sets, "campaign.models", "model set")
    for suite in campaign.suites:
        _require(suite, config.suites, "campaign.suites", "suite")
        engine = config.suites[suite].engine
        if engine is not None:
            _require(engine, config.engines, f"suites.{suite}.engine", "engine")
    if len(set(campaign.suites)) < len(campaign.suites):
        raise ConfigError("config: campaign.suites: a suite is named twice")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        raise ConfigError(
            f"config: compare_with: name each campaign once, and not this one, {campaign.name!r}"
        )


def _check_sources(config: Config) -> None:
    """Check that every model has a known family, and leads back to a file without a circle."""
    models = config.models
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        if model.family is not None:
            _require(model.family, config.families, f"{place}.family", "family")
        if isinstance(model, ConvertModel) and not _has_converter(config.engine):
            raise ConfigError(
                f"config: {place}: engine {config.campaign.engine!r} has no converter; give it"
                " `converter`, a folder of llama.cpp's source, or name an engine built from source"
            )
        seen = [name]
        while isinstance(model, QuantizeModel):
            place = f"model_sets.{config.campaign.models}.{seen[-1]}.source"
            _require(model.source, models, place, "model")
            if model.source in seen:
                raise ConfigError(f"config: {place}: {model.source!r} is made from itself")
            seen.append(model.source)
            model = models[model.source]
    for word, meaning in ((NO_DRAFT, "no draft"), (ITSELF, "the target")):
        if word in models:
            raise ConfigError(f"config: model_sets: {word!r} means {meaning} and names no model")


def _has_converter(engine: PypiEngine | GitEngine | PathEngine) -> bool:
    return not isinstance(engine, PathEngine) or engine.converter is not None


def _check_suite(config: Config, name: str, suite: Suite) -> None:
    place = f"suites.{name}"
    for target in suite.targets:
        _require(target, config.models, f"{place}.targets", "model")
    for draft in suite.drafts:
        _require(draft, [NO_DRAFT, ITSELF, *config.models], f"{place}.drafts", "model")
    for prompt in suite.prompts:
        _require(prompt, config.prompts.texts, f"{place}.prompts", "prompt")
    for field in (
        *("targets", "drafts", "gammas", "prompts", "prompt_lengths"),
        *("temperatures", "imposed_acceptance"),
    ):
        values = getattr(suite, field)
        if len(set(values)) < len(values):
            raise ConfigError(f"config: {place}.{field}: a value is named twice")
    _check_prompts(config, name, suite)
    _check_way(config, name)
    longest = max(suite.prompt_lengths, default=0)
    room = config.measurement.context - config.measurement.n_predict - max(suite.gammas, default=0)
    if longest >= room:
        raise ConfigError(
            f"config: {place}.prompt_lengths: {longest} tokens and what is generated after them"
            f" do not fit measurement.context = {config.measurement.context}"
        )


def _check_way(config: Config, name: str) -> None:
    """Check that the campaign's own engine can be asked about whatever its baselines gave."""
    engine = config.engine_of(name)
    if config.protocol_of(name) == Protocol.PAIRED and engine != config.campaign.engine:
        raise ConfigError(
            f"config: suites.{name}.engine: {engine!r} measures by protocol published alone; for"
            " protocol paired give it a campaign of its own"
        )


def _check_more_repeats(config: Config) -> None:
    """Check that cells measured more often exist, and their baselines of the same repeats."""
    if not config.measurement.more_repeats:
        return
    place = "measurement.more_repeats"
    blocks = list_blocks(config, gpu=False)
    for cell in config.measurement.more_repeats:
        _require(cell, sorted({cell_of(block.block) for block in blocks}), place, "cell")
    held = {
        (block.suite, block.target, block.temperature, block.repeat)
        for block in blocks
        if not block.has_draft
    }
    for block in blocks:
        suite = config.suites[block.suite].baseline
        needed = (suite, block.target, block.temperature, block.repeat)
        if block.has_draft and suite is not None and needed not in held:
            raise ConfigError(
                f"config: {place}: {cell_of(block.block)!r} has more repeats than its baseline in"
                f" suite {suite!r}, and the last would have nothing to be compared with"
            )


def _check_prompts(config: Config, name: str, suite: Suite) -> None:
    place = f"suites.{name}"
    published = config.protocol_of(name) == Protocol.PUBLISHED
    if published and suite.prompts and NO_DRAFT in suite.drafts:
        raise ConfigError(
            f"config: {place}.prompts: protocol published has no baselines on texts; give"
            " prompt_lengths"
        )
    if not suite.prompts and not suite.prompt_lengths:
        raise ConfigError(f"config: {place}: name at least one of prompts and prompt_lengths")


def _check_baseline(config: Config, name: str, suite: Suite) -> None:
    """Check that runs with a draft have something to be compared with.

    The study's protocol has no baselines on texts: it compares with baselines of other prompts.
    """
    if not suite.has_speculation:
        return
    if not suite.gammas:
        raise ConfigError(
            f"config: suites.{name}.gammas: a suite with a draft needs at least one γ"
        )
    if config.campaign.source == "published":
        return
    if config.protocol_of(name) == Protocol.PAIRED:
        _check_speculation(config, name, suite)
    if suite.baseline in config.campaign.suites:
        _check_same_way(config, name, suite.baseline)


def _check_same_way(config: Config, name: str, baseline: str) -> None:
    """Check that a suite and its baseline differ in nothing but the draft."""
    place = f"suites.{name}.baseline"
    ways = [(config.protocol_of(suite), config.engine_of(suite)) for suite in (name, baseline)]
    if ways[0] != ways[1]:
        raise ConfigError(
            f"config: {place}: suite {baseline!r} is measured by protocol {ways[1][0]} with engine"
            f" {ways[1][1]!r}, {name!r} by {ways[0][0]} with {ways[0][1]!r}; give them the same"
        )


def _check_speculation(config: Config, name: str, suite: Suite) -> None:
    """Check that every run with a draft has a baseline of its target and prompt."""
    place = f"suites.{name}"
    if suite.baseline is None:
        raise ConfigError(f"config: {place}.baseline: say which suite holds the runs without draft")
    _require(suite.baseline, config.campaign.suites, f"{place}.baseline", "suite of this campaign")
    baseline = config.suites[suite.baseline]
    usual = [config.measurement.temperature]
    wanted_and_held: list[tuple[str, Sequence[str | float], Sequence[str | float]]] = [
        ("draft", [NO_DRAFT], baseline.drafts),
        ("target", suite.targets, baseline.targets),
        ("prompt", suite.prompts, baseline.prompts),
        ("prompt length", suite.prompt_lengths, baseline.prompt_lengths),
        ("temperature", suite.temperatures or usual, baseline.temperatures or usual),
    ]
    lacks = [
        f"{kind} {value!r}"
        for kind, wanted, held in wanted_and_held
        for value in wanted
        if value not in held
    ]
    if lacks:
        raise ConfigError(
            f"config: {place}.baseline: suite {suite.baseline!r} has no {lacks[0]},"
            f" so runs of {name!r} would have nothing to be compared with"
        )


def _check_prompt_files(config: Config, root: Path) -> None:
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            raise ConfigError(f"config: {place}: no file {file!r} in the workflow's folder")


def _check_trace(config: Config) -> None:
    """Check that what the demonstration is to decode is there, as far as it is named."""
    asked = config.trace
    for key, model in (("target", asked.target), ("draft", asked.draft)):
        if model is not None:
            _require(model, config.models, f"trace.{key}", "model")
    if asked.prompt is not None:
        _require(asked.prompt, config.prompts.texts, "trace.prompt", "prompt")
    named = asked.target or asked.draft
    if named and config.campaign.source == "published":
        raise ConfigError(
            "config: trace: a published campaign has rows and no models to decode with"
        )
    if named and choose_demonstration(config, gpu=False) is None:
        raise ConfigError(
            f"config: trace: no suite of this campaign pairs {named!r}; name both trace.target and"
            " trace.draft"
        )
