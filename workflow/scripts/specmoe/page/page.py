"""The page: one HTML file with the content of the paper, in two languages.

The words are in `paper/site/`, the numbers are those of the paper's tables, figures and macros.
"""

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from specmoe.analysis import number_text
from specmoe.analysis.filters import (
    advised_targets,
    method_cells,
    prompt_sets,
    told_twins,
    whole_audit,
)
from specmoe.analysis.gamma_curves import LONGEST
from specmoe.analysis.registry import TABLES, Analysis, records
from specmoe.analysis.sentences import on_other_prompts, prompt_words
from specmoe.measure.trace import Recording
from specmoe.page.whatif import whatif_pairs
from specmoe.paper.macro_list import all_macros, of_family, printed_by_study
from specmoe.paper.macros import switches
from specmoe.tables.exhibits import by_section, read_figures, read_yaml
from specmoe.tables.tables import page_tables, read_tables
from specmoe.words import counted, later

MOST_ROWS = 400
"""Rows of a table on the page, which links the data of all; a campaign may have thousands."""


def render_page(
    analysis: Analysis,
    figures: Mapping[str, Any],
    recording: Recording | None,
    *,
    paper: Path,
    citation: Path,
) -> str:
    """Return the page as HTML; the same input gives the same page.

    `figures` are the pictures that `rendered.page_figures` makes, `recording` is the
    demonstration's, if the campaign has one, `paper` is the folder of the words and templates,
    `citation` the file CITATION.cff.
    """
    sources, specifications = paper / "site", paper / "tables.yaml"
    zh = Chinese(read_yaml(sources / "chinese.yaml"))
    wording = read_figures(paper / "figures.yaml")
    tables = page_tables(analysis, specifications)
    return (
        environment(sources)
        .get_template("index.html.j2")
        .render(
            style=_joined(*(sources / f"{name}.css" for name in ("style", "trace", "whatif"))),
            script=_joined(*(sources / f"{name}.js" for name in ("script", "whatif"))),
            trace=recording,
            fitted=whatif_pairs(analysis),
            longest=LONGEST,
            pair=pair,
            span=span,
            zh=zh,
            t=zh.beside,
            kind=kind_of(analysis),
            n={macro.name: number_text.shown(macro.value) for macro in all_macros(analysis)},
            on=switches(analysis, specifications),
            counts=whole_audit(analysis),
            advised=records(advised_targets(analysis)),
            elsewhere=defaultdict(list, on_other_prompts(analysis)),
            settings_of_ways=records(method_cells(analysis)),
            prompt_sets=prompt_sets(analysis),
            of_twins=records(told_twins(analysis)),
            mixtures=records(of_family(analysis.models, "moe")),
            printed=printed_by_study(analysis),
            wording=wording,
            tables=tables,
            tables_of=by_section(read_tables(specifications), tables),
            figures_of=by_section(wording, figures),
            most_rows=MOST_ROWS,
            figures=figures,
            data=data_names(analysis),
            citation=read_yaml(citation),
        )
    )


def data_names(analysis: Analysis) -> list[str]:
    """Return the tables of the analysis that have rows."""
    return [name for name in TABLES if len(getattr(analysis, name))]


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


class Chinese:
    """Words in Chinese, by the English; words without an entry stay as they are.

    An entry may have gaps, `<>`, for words that are translated in their turn.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        """Take the entries of `chinese.yaml`."""
        self._entries = entries
        self._with_gaps = [
            (re.compile(re.escape(words).replace("<>", "(.+)")), chinese)
            for words, chinese in entries.items()
            if "<>" in words
        ]

    def __call__(self, words: str) -> str:
        """Return the words in Chinese."""
        if words in self._entries:
            return self._entries[words]
        for pattern, chinese in self._with_gaps:
            if found := pattern.fullmatch(words):
                for part in found.groups():
                    chinese = chinese.replace("<>", self(part), 1)
                return chinese
        return words

    def beside(self, words: str) -> Markup:
        """Return the words in both languages, once where they are the same; escaped."""
        translated = self(words)
        return escape(words) if translated == words else pair(words, translated)


def environment(templates: Path) -> jinja2.Environment:
    """Return the template environment of a folder of HTML.

    What a template prints is escaped, and null is a dash; an undefined name is an error.
    """
    env = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else number_text.shown(value),
        loader=jinja2.FileSystemLoader(templates),
    )
    numbers = ("fixed", "percent", "thousands", "parameters", "interval")
    env.filters.update({name: getattr(number_text, name) for name in numbers})
    env.filters.update(counted=counted, later=later, prompt_words=prompt_words, digest=_digest)
    return env


def _digest(text: str) -> str:
    """Return the name by which a content security policy allows this inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _joined(*files: Path) -> Markup:
    """Return our own style sheets, or scripts, as one."""
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))  # noqa: S704
