"""The prompts of workloads: read from their files, checked and sampled."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from specmoe.config.block import Template, shuffle_key
from specmoe.config.parse import first_fault
from specmoe.config.prompt_lines import (
    JSON_SUFFIX,
    content_of,
    fault_of_line,
    fields_of_line,
    numbered_lines,
)
from specmoe.config.schema import Config
from specmoe.config.workloads import (
    AnyWorkload,
    HubWorkload,
    Sampled,
    TextsWorkload,
    WorkloadPrompt,
    file_of,
)
from specmoe.errors import ConfigError


def expand_workloads(config: Config, root: Path) -> Config:
    """Return the configuration with the prompts of each workload that the campaign sends.

    Files are relative to `root`. A campaign that is not measured here keeps the prompts that its
    configuration has. Raises ConfigError with the file and the line of the first fault.
    """
    if config.campaign.source != "measured":
        return config
    used = {name for suite in config.selected_suites.values() for name in suite.workloads}
    workloads = {
        name: workload.model_copy(update={"prompts": _prompts(config, name, workload, root)})
        if name in used
        else workload
        for name, workload in config.workloads.items()
    }
    return config.model_copy(update={"workloads": workloads})


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
    file = root / file_of(name, workload)
    if isinstance(workload, HubWorkload) and not file.exists():
        raise ConfigError(_fetch_first(name, workload, root))
    prompts = _read(workload, file)
    if not prompts:
        raise ConfigError(f"config: workloads.{name}: {file} has no prompt")
    _refuse_twins(prompts, file)
    if workload.sample is None:
        return prompts
    if workload.sample > len(prompts):
        raise ConfigError(
            f"config: workloads.{name}.sample: {file} has {len(prompts)} prompts, fewer than"
            f" {workload.sample}"
        )
    return sample(prompts, workload.sample, workload.seed)


def _fetch_first(name: str, workload: HubWorkload, root: Path) -> str:
    """Return what to type to fetch a workload, which no run of the workflow does by itself."""
    entry = workload.model_dump_json(include={"kind", "repository", "revision", "file", "sha256"})
    command = ["python", str(root / "workflow/scripts/fetch_workload.py"), "--entry", entry]
    command += ["--out", str(root / file_of(name, workload))]
    return (
        f"config: workloads.{name}: its file is not here; look at the data set's licence, and fetch"
        f" it once: {shlex.join(command)}"
    )


def _read(workload: Sampled, file: Path) -> list[WorkloadPrompt]:
    lines = numbered_lines(file)
    if file.suffix != JSON_SUFFIX:
        return [WorkloadPrompt(id=str(number), line=number) for number, _ in lines]
    return [_prompt(workload, line, file, number) for number, line in lines]


def _prompt(workload: Sampled, line: str, file: Path, number: int) -> WorkloadPrompt:
    fields, columns = fields_of_line(line, file, number), workload.columns
    try:
        content = content_of(fields, columns.prompt, columns.messages)
        raw = workload.template == Template.RAW or workload.untemplated
        if not isinstance(content, str) and raw:
            raise ValueError(
                f"{columns.messages!r} need the workload's key `template: chat`, and a target whose"
                " file has a template; raw texts have no turns"
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


def _refuse_twins(prompts: Iterable[WorkloadPrompt], file: Path) -> None:
    lines: dict[str, int | None] = {}
    for prompt in prompts:
        if prompt.id in lines:
            raise ConfigError(
                f"{file}: lines {lines[prompt.id]} and {prompt.line} have the same id"
                f" {prompt.id!r}; a line without an id has its number"
            )
        lines[prompt.id] = prompt.line
