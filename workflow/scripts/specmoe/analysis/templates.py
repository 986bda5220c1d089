"""The templates of an analysis, for paper, page and terminal, and what they print."""

from collections.abc import Callable, Mapping
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from specmoe.analysis import number_text, views
from specmoe.analysis.registry import Record, records
from specmoe.config.engines import Backend
from specmoe.files import ROOT
from specmoe.text import templates_in


def analysis_templates(
    folder: Path, printed: Callable[[Any], str] = number_text.shown, **syntax: str
) -> jinja2.Environment:
    """Return `text.templates_in` with what templates of an analysis use."""
    env = templates_in(folder, printed, **syntax)
    env.filters.update(getmembers(number_text, isfunction))
    filters = machine_of, records, views.reported_pairs, views.study_rounds
    env.filters.update({function.__name__: function for function in filters})
    env.tests["known"] = pd.notna
    return env


def unescaped(value: object) -> Markup:
    """Return a value as a terminal shows it, where nothing is escaped."""
    return Markup(number_text.shown(value))  # noqa: S704


def text_of_experiment(experiment: Record) -> str:
    """Return what `views.experiment` says in words; empty without one."""
    template = analysis_templates(ROOT / "paper", unescaped).get_template("experiment.txt.j2")
    return template.render(experiment=experiment).strip() if experiment else ""


def machine_of(campaign: Mapping[str, Any]) -> str:
    """Return the name of what computed in a campaign, from the row of `Analysis.campaign`."""
    gpu = campaign.get("machine_gpu")
    chip = campaign["machine_chip"] if campaign["backend"] == Backend.CPU or pd.isna(gpu) else gpu
    return str(chip)
