"""Loading the configuration: every fault is a readable line, with its place and the remedy.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG. Checks
come in groups: where one finds faults, the later ones would stumble over them.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from specmoe.config.base import describe_fault
from specmoe.config.block import ITSELF, NO_DRAFT, PASSAGE_PREFIX
from specmoe.config.expand import FilesSay, expand, nothing_said
from specmoe.config.matrix import (
    choose_demonstration,
    comparison_of,
    left_out_blocks,
    list_blocks,
    names_of,
)
from specmoe.config.models import NgramCache, SyntheticDraft, SyntheticModel
from specmoe.config.schema import Config
from specmoe.config.suite_checks import Faults, faults_of_suite, stop_at, unknown
from specmoe.config.synthetic_recipe import Recipe
from specmoe.config.workloads import TextsWorkload
from specmoe.errors import ConfigError, listed, nearest, one_line
from specmoe.files import json_of

CATALOGS = ("engines", "models", "prompts", "suites", "config")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A reader of YAML that refuses a key given twice: others take the last value in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if first := lines.get(str(key.value)):
                raise ValueError(f"the key {key.value!r} is in line {first} and again in {line}")
            lines[str(key.value)] = line
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def read_mapping(path: Path) -> dict[str, Any]:
    """Return what a file of YAML or JSON holds; raises ConfigError, also if a key comes twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        # Safe: it is a safe loader's child.
        found = json_of(text) if path.suffix == ".json" else yaml.load(text, _Loader)  # noqa: S506
    except OSError as error:
        raise ConfigError(f"config: {path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"config: {path}: {one_line(error)}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"config: {path}: it has no keys at top level")
    return found


def overlaid(root: Path, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the catalogs of the workflow, whose folder is `root`, with an overlay upon them."""
    catalogs = [read_mapping(root / f"config/{catalog}.yaml") for catalog in CATALOGS]
    return reduce(_laid_over, [*catalogs, given])


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a mapping with another one upon it, key by key, as snakemake merges them.

    Only where both have a section: aliases in each other would make a mapping without an end.
    """
    merged = dict(below)
    for key, value in above.items():
        own = below.get(key)
        sections = isinstance(own, Mapping) and isinstance(value, Mapping)
        merged[key] = _laid_over(own or {}, value) if sections else value
    return merged


# Bytes of the campaign's part of the configuration, which the rule `plan` has in its command line:
# Linux takes 128 KiB. Shipped campaigns have 11 kB.
LONGEST = 100_000
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
    ConfigError with a line for each fault: its place and the remedy.
    """
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(listed([*_lines_of_schema(error)])) from error
    stop_at(_names(config))
    stop_at(_models(config), _models_of_suites(config), _workloads(config), _files(config, root))
    config = expand(config, root, files_say(config))
    stop_at(_length(config))
    stop_at(*(faults_of_suite(config, name) for name in config.selected_suites))
    stop_at(_more_repeats(config), _left_out(config), _trace(config))
    if config.trace.model_fields_set:
        choose_demonstration(config, gpu=False)
    return config


def _lines_of_schema(error: ValidationError) -> Iterator[str]:
    """Yield a line for each value that the schema refuses.

    A value of several types has a fault for each of them: the one that got deepest says most.
    """
    faults = [(tuple(keys_of(fault["loc"])), fault) for fault in error.errors(include_url=False)]
    told = {place[:depth] for place, _ in faults for depth in range(len(place))}
    for place, fault in faults:
        if place in told:
            continue
        told.add(place)
        keys = [str(key) for key in place]
        if fault["type"] == "unexpected_keyword_argument":
            key = keys.pop()
            known = [field.name for field in dataclasses.fields(Recipe)]
            yield f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
        else:
            yield f"config: {describe_fault(fault, keys)}"


def keys_of(place: Sequence[int | str]) -> list[int | str]:
    """Return the keys on the way to the place of a fault, without the branches of unions."""
    tag = _TAG_DEPTH.get(str(place[0])) if place else None
    return [
        part
        for depth, part in enumerate(place)
        if depth != tag and not str(part).startswith(_UNION_BRANCHES)
    ]


def _names(config: Config) -> Faults:
    campaign = config.campaign
    yield from unknown(campaign.engine, config.engines, "campaign.engine", "engine")
    yield from unknown(campaign.models, config.model_sets, "campaign.models", "model set")
    for name in campaign.suites:
        yield from unknown(name, config.suites, "campaign.suites", "suite")
        suite = config.suites.get(name)
        if suite and suite.engine is not None:
            yield from unknown(suite.engine, config.engines, f"suites.{name}.engine", "engine")
    if len({campaign.name, *config.compare_with}) < 1 + len(config.compare_with):
        yield "compare_with", f"name each campaign once, and not this one, {campaign.name!r}"


def _length(config: Config) -> Faults:
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


def _models(config: Config) -> Faults:
    models = config.models
    for name, model in models.items():
        place = f"model_sets.{config.campaign.models}.{name}"
        if model.family is not None:
            yield from unknown(model.family, config.families, f"{place}.family", "family")
        if isinstance(model, SyntheticDraft):
            yield from _synthetic_draft(config, model, place)
        yield from _made_from(config, name)
    for word, meaning in ((NO_DRAFT, "no draft"), (ITSELF, "the target")):
        if word in models:
            yield "model_sets", f"{word!r} means {meaning} and names no model"


def _made_from(config: Config, name: str) -> Faults:
    """Check what a model is made from; of a ring, each model is told that it is in one."""
    seen = [name]
    while source := config.models[seen[-1]].made_from:
        key = config.models[seen[-1]].source_key
        place = f"model_sets.{config.campaign.models}.{seen[-1]}.{key}"
        if source not in config.models:
            # The model that names it tells it, and not those that are made from that one.
            yield from unknown(source, config.models, place, "model") if len(seen) == 1 else ()
            return
        if source in seen:
            yield place, f"{source!r} is made from itself"
            return
        seen.append(source)


def _synthetic_draft(config: Config, draft: SyntheticDraft, place: str) -> Faults:
    """Check that a draft's target has a recipe that such a draft can be constructed from."""
    target = config.models.get(draft.target)
    if target is None:
        yield from unknown(draft.target, config.models, f"{place}.target", "model")
    elif not isinstance(target, SyntheticModel):
        yield f"{place}.target", f"{draft.target!r} is not of kind synthetic"
    elif target.recipe.first_full_attention is None:
        yield f"{place}.target", f"the core of {draft.target!r} has no layer of full attention"
    elif target.recipe.hidden % target.recipe.head_size:
        yield f"{place}.target", f"{draft.target!r}: hidden is no multiple of head_size"


def _models_of_suites(config: Config) -> Faults:
    for name, suite in config.selected_suites.items():
        for target in suite.targets:
            yield from unknown(target, config.models, f"suites.{name}.targets", "model")
        for draft in suite.drafts:
            known = [NO_DRAFT, ITSELF, *config.models]
            yield from unknown(draft, known, f"suites.{name}.drafts", "model")


def _more_repeats(config: Config) -> Faults:
    if config.measurement.more_repeats:
        known = sorted({comparison_of(block.block) for block in list_blocks(config, gpu=False)})
        for name in config.measurement.more_repeats:
            yield from unknown(name, known, "measurement.more_repeats", "comparison")


def _left_out(config: Config) -> Faults:
    """Check that what is left out exists, and that every suite and the first repeat keep a block.

    The first repeat describes the machine for all others.
    """
    if not config.campaign.left_out:
        return
    place = "campaign.left_out"
    left, out = list_blocks(config, gpu=False), left_out_blocks(config)
    known = {
        name for block in [*left, *out] for side in block.sides for name in names_of(block, side)
    }
    for name in config.campaign.left_out:
        yield from unknown(name, known, place, "block, comparison or setting")
    for suite in config.campaign.suites:
        if all(block.suite != suite for block in left):
            yield place, f"nothing of suite {suite} is left; take it out of campaign.suites"
    if all(block.repeat for block in left):
        yield place, "no block of the first repeat is left, and it describes the machine"


def _workloads(config: Config) -> Faults:
    for suite_name, suite in config.selected_suites.items():
        for name in suite.workloads:
            place = f"suites.{suite_name}.workloads"
            yield from unknown(name, config.workloads, place, "workload")
    for name, workload in config.workloads.items():
        if f"{name}-".startswith(PASSAGE_PREFIX):
            yield "workloads", f"{name!r} names prompts of exact length; take another name"
        if name in config.prompts.texts:
            yield "workloads", f"{name!r} is a text of prompts.texts; take another name"
        for text in workload.texts if isinstance(workload, TextsWorkload) else []:
            yield from unknown(text, config.prompts.texts, f"workloads.{name}.texts", "prompt")


def _files(config: Config, root: Path) -> Faults:
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    files |= {
        f"model_sets.{config.campaign.models}.{name}.text": model.text
        for name, model in config.models.items()
        if isinstance(model, NgramCache)
    }
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            yield place, f"no file {file!r} in the workflow's folder"


def _trace(config: Config) -> Faults:
    asked = config.trace
    for key, name in (("target", asked.target), ("draft", asked.draft)):
        if name is not None:
            yield from unknown(name, config.models, f"trace.{key}", "model")
    if asked.prompt is not None:
        yield from unknown(asked.prompt, config.prompts.texts, "trace.prompt", "prompt")
    if (asked.target or asked.draft) and config.campaign.source == "published":
        yield "trace", "a published campaign has rows and no models to decode with"
