"""What is said of each table and figure, and in which section paper and page show it."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class English:
    """Title and note of every table and figure, for snakemake's report, which alone reads them."""

    tables: Path
    figures: Path

    @property
    def table(self) -> dict[str, list[str]]:
        """Title and note of the tables."""
        return _english(read_yaml(self.tables)["tables"])

    @property
    def figure(self) -> dict[str, list[str]]:
        """Title and note of the figures."""
        return _english(read_yaml(self.figures))


def _english(about: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: [one["title"][0], one["note"][0]] for name, one in about.items()}


def read_yaml(path: Path) -> Any:
    """Return what a YAML file has."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
