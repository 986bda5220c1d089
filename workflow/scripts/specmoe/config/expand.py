"""What files say of a configuration: methods by name, prompts of workloads."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from specmoe.config.base import first_fault
from specmoe.config.block import ITSELF, NO_DRAFT, Template, shuffle_key
from specmoe.config.methods import METHODS, Drafting, Method, is_ngram
from specmoe.config.schema import ALL, Config, Suite
from specmoe.config.workloads import (
    JSON_SUFFIX,
    AnyWorkload,
    FileWorkload,
    TextsWorkload,
    WorkloadPrompt,
    content_of,
    fault_of_line,
    fields_of_line,
    numbered_lines,
)
from specmoe.errors import ConfigError, listed


class FileFacts(NamedTuple):
    """What a model's file says of drafting."""

    has_block: bool = False  # whether a target has a block that predicts further tokens
    method: Method = Method.DRAFT  # how a draft's file drafts


# How many tokens are looked up, and how many are drafted at most: short ones as of a draft model,
# and of the pool also what llama.cpp advises for MoEs (docs/speculative.md, ngram-mod: `n-match`
# 24, 48 to 64 drafted).
_NGRAM_LENGTHS = [(3, 8)]
_LENGTHS_OF_POOL = [*_NGRAM_LENGTHS, (24, 64)]

FilesSay = Callable[[str], FileFacts]
"""Gives what a model's file says, by the model's id."""


def nothing_said(_: str) -> FileFacts:
    """Return the facts of a file that is not here: none."""
    return FileFacts()


def expand(config: Config, root: Path, known: FilesSay) -> Config:
    """Return the configuration with the methods and prompts of its suites.

    Files are relative to `root`. A campaign that is not measured here keeps the prompts that its
    configuration has. Raises ConfigError with the file and the line of the first fault.
    """
    suites = {
        name: _with_methods(suite, known) if suite.methods == ALL else suite
        for name, suite in config.selected_suites.items()
    }
    workloads: dict[str, AnyWorkload] = {}
    if config.campaign.source == "measured":
        sent = {name for suite in suites.values() for name in suite.workloads}
        for name in filter(sent.__contains__, config.workloads):
            workload = config.workloads[name]
            prompts = _prompts(config, name, workload, root)
            workloads[name] = workload.model_copy(update={"prompts": prompts})
    return config.model_copy(
        update={"suites": config.suites | suites, "workloads": config.workloads | workloads}
    )


def _with_methods(suite: Suite, known: FilesSay) -> Suite:
    """Return a suite whose drafts draft as their files can, and whose targets by all else.

    Targets with a block for it draft by MTP, and every target by n-grams at lengths of their own.
    """
    by_method: dict[Method, list[str]] = {}
    for draft in suite.drafts:
        plain = draft in (NO_DRAFT, ITSELF)
        method = Method.DRAFT if plain else known(draft).method
        by_method.setdefault(method, []).append(draft)
    simple = by_method.pop(Method.DRAFT, [])
    ways = [Drafting(method=method, drafts=drafts) for method, drafts in by_method.items()]
    with_block = [target for target in suite.targets if known(target).has_block]
    if with_block and Method.MTP not in by_method:
        ways.append(Drafting(method=Method.MTP, targets=with_block))
    for method in filter(is_ngram, Method):
        lengths = _LENGTHS_OF_POOL if method == Method.NGRAM_MOD else _NGRAM_LENGTHS
        ways += [
            Drafting(method=method, gammas=[gamma], n_match=[n_match])
            for n_match, gamma in (lengths if "gamma" in METHODS[method].flags else [])
        ] or [Drafting(method=method)]
    return suite.model_copy(update={"drafts": simple, "methods": ways})


def sample(prompts: list[WorkloadPrompt], count: int, seed: int) -> list[WorkloadPrompt]:
    """Return `count` of the prompts in their order, of each category its share.

    Shares are rounded by largest remainders. Which prompts of a category are taken depends on their
    ids and the seed alone.
    """
    by_category: dict[str, list[WorkloadPrompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category or "", []).append(prompt)
    exact = {name: count * len(its) / len(prompts) for name, its in by_category.items()}
    taken = {name: int(share) for name, share in exact.items()}
    largest = sorted(exact, key=lambda name: (taken[name] - exact[name], name))
    for name in largest[: count - sum(taken.values())]:
        taken[name] += 1
    chosen = {
        prompt.id
        for name, its in by_category.items()
        for prompt in sorted(its, key=lambda one: shuffle_key(seed, one.id))[: taken[name]]
    }
    return [prompt for prompt in prompts if prompt.id in chosen]


def _prompts(config: Config, name: str, workload: AnyWorkload, root: Path) -> list[WorkloadPrompt]:
    if isinstance(workload, TextsWorkload):
        texts = config.prompts.texts
        return [WorkloadPrompt(id=one, category=texts[one].category) for one in workload.texts]
    file, place = root / workload.file, f"config: workloads.{name}"
    prompts = _read(workload, file)
    if not prompts:
        raise ConfigError(f"{place}: {file} has no prompt")
    if workload.sample is None:
        return prompts
    if workload.sample > len(prompts):
        raise ConfigError(
            f"{place}.sample: {file} has {len(prompts)} prompts, fewer than {workload.sample}"
        )
    return sample(prompts, workload.sample, workload.seed)


def _read(workload: FileWorkload, file: Path) -> list[WorkloadPrompt]:
    """Return the prompts of a file; raises ConfigError with a line for each fault."""
    lines = numbered_lines(file)
    if file.suffix != JSON_SUFFIX:
        return [WorkloadPrompt(id=str(number), line=number) for number, _ in lines]
    found: dict[str, WorkloadPrompt] = {}
    faults = []
    for number, line in lines:
        try:
            prompt = _prompt(workload, line, file, number)
        except ConfigError as error:
            faults.append(str(error))
            continue
        twin = found.setdefault(prompt.id, prompt)
        if twin is not prompt:
            faults.append(
                f"{file}: lines {twin.line} and {number} have the same id {prompt.id!r}; a line"
                " without an id has its number"
            )
    if faults:
        raise ConfigError(listed(faults))
    return list(found.values())


def _prompt(workload: FileWorkload, line: str, file: Path, number: int) -> WorkloadPrompt:
    fields, columns = fields_of_line(line, file, number), workload.columns
    try:
        content = content_of(fields, columns.prompt, columns.messages)
        if not isinstance(content, str) and workload.template == Template.RAW:
            raise ValueError(
                f"{columns.messages!r} need the workload's key `template: chat`; raw texts have no"
                " turns"
            )
        return WorkloadPrompt(
            id=_word(fields, columns.id) or str(number),
            category=_word(fields, columns.category),
            line=number,
        )
    except ValidationError as error:
        raise fault_of_line(file, number, first_fault(error)) from error
    except ValueError as error:
        raise fault_of_line(file, number, str(error)) from error


def _word(fields: Mapping[str, Any], key: str) -> str | None:
    """Return a field that is a text or a whole number; None without one."""
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key!r} is no text")
    return str(value).strip()
