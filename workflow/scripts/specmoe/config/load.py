"""Loading the configuration: every fault ends in one readable line.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from specmoe.config.base import describe_fault
from specmoe.config.block import ITSELF, NO_DRAFT, PASSAGE_PREFIX
from specmoe.config.expand import FilesSay, expand, nothing_said
from specmoe.config.matrix import comparison_of, left_out_blocks, list_blocks, setting_of
from specmoe.config.models import AnyModel, NgramCache, SyntheticDraft, SyntheticModel
from specmoe.config.schema import Config
from specmoe.config.suite_checks import LONGEST, check_suite, refuse, require
from specmoe.config.synthetic_recipe import Recipe
from specmoe.config.trace import choose_demonstration
from specmoe.config.workloads import TextsWorkload
from specmoe.errors import ConfigError, nearest

# Where pydantic adds the branch of a tagged union to the place of a fault.
_TAG_DEPTH = {"engines": 2, "model_sets": 3, "workloads": 2}
# What it adds where a value may be of several types.
_UNION_BRANCHES = ("list[", "literal[")


def load(
    data: Mapping[str, Any],
    root: Path,
    files_say: Callable[[Config], FilesSay] = lambda _: nothing_said,
) -> Config:
    """Return the checked configuration, with every suite's methods by name.

    `data` is the merged mapping that Snakemake read; prompt files and shipped models are relative
    to `root`, the workflow's folder; `files_say` returns what model files say of drafting. Raises
    ConfigError with the place of the first fault and the remedy.
    """
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error
    _check_names(config)
    _check_models(config)
    _check_models_of_suites(config)
    _check_workloads(config)
    config = expand(config, root, files_say(config))
    _check_length(config)
    for name in config.selected_suites:
        check_suite(config, name)
    _check_more_repeats(config)
    _check_left_out(config)
    _check_prompt_files(config, root)
    _check_trace(config)
    return config


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
            refuse(
                "compare_with",
                f"there is no {analysis}; render campaign {name!r} first: snakemake --cores 1 paper"
                f" --configfile {overlay}",
            )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    keys = [str(key) for key in keys_of(fault["loc"])]
    if fault["type"] == "unexpected_keyword_argument":
        key = keys.pop()
        known = [field.name for field in dataclasses.fields(Recipe)]
        return f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
    return f"config: {describe_fault(fault, keys)}"


def keys_of(place: Sequence[int | str]) -> list[int | str]:
    """Return the keys on the way to the place of a fault, without the branches of unions."""
    tag = _TAG_DEPTH.get(str(place[0])) if place else None
    return [
        part
        for depth, part in enumerate(place)
        if depth != tag and not str(part).startswith(_UNION_BRANCHES)
    ]


def _check_names(config: Config) -> None:
    campaign = config.campaign
    require(campaign.engine, config.engines, "campaign.engine", "engine")
    require(campaign.models, config.model_sets, "campaign.models", "model set")
    for suite in campaign.suites:
        require(suite, config.suites, "campaign.suites", "suite")
        engine = config.suites[suite].engine
        if engine is not None:
            require(engine, config.engines, f"suites.{suite}.engine", "engine")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        refuse("compare_with", f"name each campaign once, and not this one, {campaign.name!r}")


def _check_length(config: Config) -> None:
    """Check that jobs can be given the campaign's part of the configuration."""
    sections = config.of_campaign().model_dump(mode="json")
    lengths = {name: len(json.dumps(section)) for name, section in sections.items()}
    if sum(lengths.values()) > LONGEST:
        longest = max(lengths, key=lambda name: lengths[name])
        refuse(
            longest,
            f"most of the campaign's {sum(lengths.values()) / 1e3:,.0f} kB of configuration are"
            f" here, and jobs are given {LONGEST / 1e3:.0f} kB at most; shorten its lists and"
            " texts, or divide the campaign",
        )


def _check_models(config: Config) -> None:
    models = config.models
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        if model.family is not None:
            require(model.family, config.families, f"{place}.family", "family")
        if isinstance(model, SyntheticDraft):
            _check_synthetic_draft(models, model, place)
        _check_made_from(config, name)
    for word, meaning in ((NO_DRAFT, "no draft"), (ITSELF, "the target")):
        if word in models:
            refuse("model_sets", f"{word!r} means {meaning} and names no model")


def _check_models_of_suites(config: Config) -> None:
    for name, suite in config.selected_suites.items():
        for target in suite.targets:
            require(target, config.models, f"suites.{name}.targets", "model")
        for draft in suite.drafts:
            require(draft, [NO_DRAFT, ITSELF, *config.models], f"suites.{name}.drafts", "model")


def _check_made_from(config: Config, name: str) -> None:
    seen = [name]
    while source := config.models[seen[-1]].made_from:
        key = config.models[seen[-1]].source_key
        place = f"model_sets.{config.campaign.models}.{seen[-1]}.{key}"
        require(source, config.models, place, "model")
        if source in seen:
            refuse(place, f"{source!r} is made from itself")
        seen.append(source)


def _check_synthetic_draft(
    models: Mapping[str, AnyModel], draft: SyntheticDraft, place: str
) -> None:
    """Check that a draft's target has a recipe that such a draft can be constructed from."""
    require(draft.target, models, f"{place}.target", "model")
    target = models[draft.target]
    if not isinstance(target, SyntheticModel):
        refuse(f"{place}.target", f"{draft.target!r} is not of kind synthetic")
    if target.recipe.first_full_attention is None:
        refuse(f"{place}.target", f"the core of {draft.target!r} has no layer of full attention")
    if target.recipe.hidden % target.recipe.head_size:
        refuse(f"{place}.target", f"{draft.target!r}: hidden is no multiple of head_size")


def _check_more_repeats(config: Config) -> None:
    if not config.measurement.more_repeats:
        return
    known = {comparison_of(block.block) for block in list_blocks(config, gpu=False)}
    for name in config.measurement.more_repeats:
        require(name, sorted(known), "measurement.more_repeats", "comparison")


def _check_left_out(config: Config) -> None:
    """Check that what is left out exists, and that every suite and the first repeat keep a block.

    The first repeat describes the machine for all others.
    """
    if not config.campaign.left_out:
        return
    place = "campaign.left_out"
    left, out = list_blocks(config, gpu=False), left_out_blocks(config)
    known = set()
    for block in [*left, *out]:
        known |= {block.block, comparison_of(block.block)}
        known |= {setting_of(block, side) for side in block.sides if side.speculates}
    for name in config.campaign.left_out:
        require(name, sorted(known), place, "block, comparison or setting")
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in left):
            refuse(place, f"nothing of suite {suite} is left; take it out of campaign.suites")
    if all(block.repeat for block in left):
        refuse(place, "no block of the first repeat is left, and it describes the machine")


def _check_workloads(config: Config) -> None:
    for suite_name, suite in config.selected_suites.items():
        for name in suite.workloads:
            require(name, config.workloads, f"suites.{suite_name}.workloads", "workload")
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX):
            refuse("workloads", f"{name!r} names prompts of exact length; take another name")
        if name in config.prompts.texts:
            refuse("workloads", f"{name!r} is a text of prompts.texts; take another name")
        texts = workload.texts if isinstance(workload, TextsWorkload) else []
        for text in texts:
            require(text, config.prompts.texts, f"workloads.{name}.texts", "prompt")


def _check_prompt_files(config: Config, root: Path) -> None:
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    files |= {
        f"model_sets.{config.campaign.models}.{name}.text": model.text
        for name, model in config.models.items()
        if isinstance(model, NgramCache)
    }
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            refuse(place, f"no file {file!r} in the workflow's folder")


def _check_trace(config: Config) -> None:
    asked = config.trace
    for key, model in (("target", asked.target), ("draft", asked.draft)):
        if model is not None:
            require(model, config.models, f"trace.{key}", "model")
    if asked.prompt is not None:
        require(asked.prompt, config.prompts.texts, "trace.prompt", "prompt")
    if (asked.target or asked.draft) and config.campaign.source == "published":
        refuse("trace", "a published campaign has rows and no models to decode with")
    if asked.model_fields_set:
        choose_demonstration(config, gpu=False)
