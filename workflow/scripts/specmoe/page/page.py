"""The page: one HTML file with the content of the paper, in two languages.

The words are in `paper/site/`, the numbers are those of the paper's tables, figures and macros.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup, escape

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import advised_targets, ordered_files, records, whole_audit
from specmoe.analysis.labelled_loads import change_cells
from specmoe.measure.trace_record import Recording
from specmoe.page.data import data_names
from specmoe.page.figures import Picture
from specmoe.page.templates import environment
from specmoe.page.trace import trace_context
from specmoe.paper.macro_list import all_macros, of_family, printed_by_study
from specmoe.paper.macros import switches
from specmoe.tables.number_text import shown
from specmoe.tables.tables import page_tables

MOST_ROWS = 400
"""Rows of a table on the page, which links the data of all; a campaign may have thousands."""


def render_page(
    analysis: Analysis,
    figures: Mapping[str, Picture],
    recording: Recording | None,
    *,
    paper: Path,
    citation: Path,
) -> str:
    """Return the page as HTML; the same input gives the same page.

    `figures` are those of `figures.page_figures`, `recording` is the demonstration's, if the
    campaign has one, `paper` is the folder of the words and templates, `citation` the file
    CITATION.cff.
    """
    sources = paper / "site"
    return (
        environment(sources)
        .get_template("index.html.j2")
        .render(
            style=_joined(sources / "style.css", sources / "trace.css"),
            script=_joined(sources / "script.js", sources / "trace.js"),
            trace=trace_context(recording) if recording else None,
            pair=pair,
            span=span,
            t=translator(_read(sources / "chinese.yaml")),
            kind=kind_of(analysis),
            n={macro.name: shown(macro.value) for macro in all_macros(analysis)},
            on=switches(analysis),
            counts=whole_audit(analysis),
            advised=records(advised_targets(analysis)),
            changes=records(change_cells(analysis)),
            mixtures=records(of_family(ordered_files(analysis), "moe")),
            printed=printed_by_study(analysis),
            wording=_read(sources / "figures.yaml"),
            captions={
                path.stem: " ".join(path.read_text(encoding="utf-8").split())
                for path in sorted((paper / "captions").glob("*.rst"))
            },
            tables=page_tables(analysis, paper / "tables.yaml"),
            most_rows=MOST_ROWS,
            figures=figures,
            data=data_names(analysis),
            citation=_read(citation),
        )
    )


def kind_of(analysis: Analysis) -> str:
    """Return the kind of a campaign, which selects words of the page.

    `published`: the study's own rows; `synthetic`: small models with random weights; `shape`:
    random weights in the sizes of real models; `real`: any other models.
    """
    campaign = records(analysis.campaign)[0]
    if campaign["source"] == "published":
        return "published"
    if not campaign["synthetic"]:
        return "real"
    return "shape" if campaign["true_shape"] else "synthetic"


def pair(english: str, chinese: str) -> Markup:
    """Return words in both languages; the page shows those of the one that is chosen."""
    spans = '<span class="t" lang="en">{}</span><span class="t" lang="zh-CN">{}</span>'
    return Markup(spans).format(english, chinese)  # noqa: S704 (what it formats is escaped)


def span(low: str, high: str, between: str) -> str:
    """Return the ends of a range as one text: where both print the same, as one value."""
    return low if low == high else f"{low}{between}{high}"


def translator(chinese: Mapping[str, str]) -> Callable[[str], Markup]:
    """Return a function that gives words in both languages; words without Chinese stay English.

    It escapes the words, which may come from a configuration.
    """

    def translate(words: str) -> Markup:
        return pair(words, chinese[words]) if words in chinese else escape(words)

    return translate


def _joined(*files: Path) -> Markup:
    """Return our own style sheets, or scripts, as one."""
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))  # noqa: S704


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
