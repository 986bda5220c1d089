"""Loading the configuration: every error is a readable line, with its place and the remedy.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG. Checks
come in groups: where one finds errors, the later ones would stumble over them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specmoe.config import checks
from specmoe.config.base import describe_error
from specmoe.config.block import NO_DRAFT, SELF
from specmoe.config.checks import stop_at
from specmoe.config.methods import METHODS, Drafting, Method, is_ngram
from specmoe.config.schema import ALL, Config, Suite
from specmoe.config.workloads import AnyWorkload, TextsWorkload, WorkloadPrompt, prompts_of_file
from specmoe.errors import ConfigError, listed, one_line
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


PLAIN = frozenset([Method.DRAFT])
FilesSay = Callable[[str], frozenset[Method]]
"""Gives the methods of drafting that a model's file is made for, by the model's id.

A draft model has `PLAIN`, and MTP too if it has the block; other files have their own alone.
"""


def load(
    data: Mapping[str, Any],
    root: Path,
    files_say: Callable[[Config], FilesSay] = lambda _: lambda _: PLAIN,
) -> Config:
    """Return the checked configuration, with every suite's methods by name.

    `data` is the merged mapping that Snakemake read; prompt files and shipped models are relative
    to `root`, the workflow's folder; `files_say` returns what model files say of drafting. Raises
    ConfigError with a line for each error: its place and the remedy.
    """
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(listed([f"config: {line}" for line in lines_of(error)])) from error
    stop_at(checks.names(config))
    stop_at(checks.members(config), checks.files(config, root))
    config = _expanded(config, root, files_say(config))
    stop_at(checks.length(config))
    stop_at(*(checks.suite(config, name) for name in config.selected_suites))
    stop_at(checks.repeats_and_excluded(config))
    return config


def _expanded(config: Config, root: Path, known: FilesSay) -> Config:
    """Return the configuration with the methods and prompts of its suites.

    A campaign that is not measured here keeps the prompts that its configuration has.
    """
    suites = {
        name: _with_methods(suite, known) if suite.methods == ALL else suite
        for name, suite in config.selected_suites.items()
    }
    workloads: dict[str, AnyWorkload] = {}
    if config.campaign.source == "measured":
        texts = config.prompts.texts
        sent = {name for suite in suites.values() for name in suite.workloads}
        for name in filter(sent.__contains__, config.workloads):
            workload = config.workloads[name]
            prompts = (
                [WorkloadPrompt(id=one, category=texts[one].category) for one in workload.texts]
                if isinstance(workload, TextsWorkload)
                else prompts_of_file(workload, root / workload.file)
            )
            workloads[name] = workload.model_copy(update={"prompts": prompts})
    return config.model_copy(
        update={"suites": config.suites | suites, "workloads": config.workloads | workloads}
    )


# How many tokens are looked up, and how many are drafted at most: short ones as of a draft model,
# and of the pool also what llama.cpp advises for MoEs (docs/speculative.md, ngram-mod: `n-match`
# 24, 48 to 64 drafted).
_NGRAM_LENGTHS = [(3, 8)]
_LENGTHS_OF_POOL = [*_NGRAM_LENGTHS, (24, 64)]


def _with_methods(suite: Suite, known: FilesSay) -> Suite:
    """Return a suite whose drafts draft as their files can, and whose targets by all else.

    Targets with a block for it draft by MTP, and every target by n-grams at lengths of their own.
    """
    by_method: dict[Method, list[str]] = {}
    for draft in suite.drafts:
        made_for = PLAIN if draft in (NO_DRAFT, SELF) else known(draft)
        by_method.setdefault(min(made_for), []).append(draft)  # MTP comes after DRAFT
    simple = by_method.pop(Method.DRAFT, [])
    ways = [Drafting(method=method, drafts=drafts) for method, drafts in by_method.items()]
    with_block = [target for target in suite.targets if Method.MTP in known(target)]
    if with_block and Method.MTP not in by_method:
        ways.append(Drafting(method=Method.MTP, targets=with_block))
    for method in filter(is_ngram, Method):
        lengths = _LENGTHS_OF_POOL if method == Method.NGRAM_MOD else _NGRAM_LENGTHS
        ways += [
            Drafting(method=method, gammas=[gamma], n_match=[n_match])
            for n_match, gamma in (lengths if "gamma" in METHODS[method].flags else [])
        ] or [Drafting(method=method)]
    return suite.model_copy(update={"drafts": simple, "methods": ways})


# Where pydantic adds the branch of a tagged union to the place of an error.
_TAG_DEPTH = {"engines": 2, "model_sets": 3, "workloads": 2}
# What it adds where a value may be of several types.
_UNION_BRANCHES = ("list[", "literal[")


def lines_of(error: ValidationError) -> Iterator[str]:
    """Yield a line for each value that the schema refuses, with its place.

    A value of several types has an error for each of them: the one that got deepest says most.
    """
    errors: dict[tuple[str, ...], ErrorDetails] = {}
    for reason in error.errors(include_url=False):
        path = [*map(str, reason["loc"])]
        tag = _TAG_DEPTH.get("".join(path[:1]), len(path))
        del path[tag : tag + 1]
        errors.setdefault(tuple(p for p in path if not p.startswith(_UNION_BRANCHES)), reason)
    deeper = {place[:depth] for place in errors for depth in range(len(place))}
    for place, reason in errors.items():
        if place not in deeper:
            yield describe_error(reason, place)
