"""What is said of each table and figure, and in which section paper and page show it."""

from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict


class Words(NamedTuple):
    """The same words in both languages."""

    en: str
    zh: str


class Exhibit(BaseModel):
    """A table or figure; `paper/tables.yaml` and `paper/figures.yaml` explain the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Words
    note: Words
    section: str
    data: list[str]


class Picture(Exhibit):
    """A figure as `paper/figures.yaml` specifies it."""

    alt: Words


@cache
def read_figures(path: Path) -> dict[str, Picture]:
    """Return the specifications of all figures by name, in the order of `paper/figures.yaml`."""
    return {name: Picture(**about) for name, about in read_yaml(path).items()}


def by_section(exhibits: Mapping[str, Exhibit], shown: Container[str]) -> dict[str, list[str]]:
    """Return the names of each section's exhibits, of those that are shown."""
    sections: dict[str, list[str]] = {about.section: [] for about in exhibits.values()}
    for name, about in exhibits.items():
        if name in shown:
            sections[about.section].append(name)
    return sections


def english(files: Mapping[str, Path]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return title and note of every table and figure in English, for snakemake's report.

    `files` are the YAML files of `table` and `figure`.
    """
    about = {"table": read_yaml(files["table"])["tables"], "figure": read_yaml(files["figure"])}
    return {
        kind: {name: (one["title"][0], one["note"][0]) for name, one in exhibits.items()}
        for kind, exhibits in about.items()
    }


def read_yaml(path: Path) -> Any:
    """Return what a YAML file has."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
