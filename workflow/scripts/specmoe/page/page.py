"""The page: one HTML file with the content of the paper, in two languages.

The words are in `paper/site/`, the numbers are those of the analysis.
"""

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import expm1, isnan
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from specmoe.analysis import number_text
from specmoe.analysis.advice import Answer
from specmoe.analysis.advice_text import machine_of
from specmoe.analysis.cost_tables import PAIR
from specmoe.analysis.filters import (
    advised_targets,
    count_check,
    text_cells,
    told_twins,
    whole_audit,
)
from specmoe.analysis.gamma_curves import LONGEST
from specmoe.analysis.intervals import session_reach
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.sentences import on_other_prompts, prompt_words
from specmoe.audit.checks import Forged
from specmoe.measure.trace import Recording
from specmoe.page.whatif import whatif_pairs
from specmoe.tables.exhibits import read_figures, read_yaml
from specmoe.tables.rows import short_commits
from specmoe.tables.tables import Table, page_tables
from specmoe.words import counted, later

MOST_ROWS = 30
"""Rows of a table on the page, which links the data of all; a campaign may have thousands."""

MOST_ROUNDS = 2
"""Rounds of the demonstration on the page; its data have all."""


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
    sources = paper / "site"
    zh = Chinese(read_yaml(sources / "chinese.yaml"))
    campaign, counts = records(analysis.campaign)[0], whole_audit(analysis)
    advised = records(advised_targets(analysis))
    elsewhere = defaultdict(list, on_other_prompts(analysis))
    cells = text_cells(analysis)
    best = [row for row in advised if row["settings"]]
    top, ticks = scale([*best, *(row for rows in elsewhere.values() for row in rows)])
    settings = analysis.break_even.drop_duplicates([*PAIR, "gamma"])
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
            of_study=analysis.of_study,
            campaign=campaign,
            campaign_runs=int(analysis.suites["runs"].sum()),
            commit=short_commits(campaign["engine_commit"]),
            machine=machine_of(campaign),
            memory=campaign.get("host_memory_bytes"),
            session=expm1(session_reach(campaign["session_sd"])),
            counts=counts,
            controls=count_check(counts, "controls"),
            twice=flagged_if_twice_as_fast(analysis),
            advised=advised,
            gains=[Answer.ON, Answer.HERE, Answer.LOOPING],
            elsewhere=elsewhere,
            speedups=[row["speedup"] for row in best],
            top=top,
            ticks=ticks,
            cells=len(cells),
            rates=cells["acceptance_rate"].dropna().tolist(),
            factors=cells["speedup"].tolist(),
            ceilings=settings["ceiling_high"].dropna().tolist(),
            of_twins=records(told_twins(analysis)),
            wording=read_figures(paper / "figures.yaml"),
            tables=page_tables(analysis, paper / "tables.yaml"),
            chosen=chosen,
            most_rows=MOST_ROWS,
            most_rounds=MOST_ROUNDS,
            figures=figures,
            data=data_names(analysis),
            citation=read_yaml(citation),
        )
    )


def scale(rows: Sequence[Record]) -> tuple[float, list[float]]:
    """Return the end of an axis that begins at zero and holds the intervals, and its ticks."""
    ends = [row[name] for row in rows for name in ("speedup", "speedup_high")]
    top = 1.06 * max([1.2, *(end for end in ends if not isnan(end))])
    step = 0.25 if top < 2 else 0.5 if top < 4 else float(round(top / 5))
    return top, [step * tick for tick in range(1, int(top / step) + 1)] if rows else []


def chosen(table: Table, keys: Collection[str] | None) -> Table:
    """Return a table with the columns of these keys alone, or all, and without totals."""
    at = [place for place, one in enumerate(table.columns) if keys is None or one.key in keys]
    rows = [[cells[place] for place in at] for cells in table.rows]
    return replace(table, columns=[table.columns[place] for place in at], rows=rows, totals=[])


def prompts_in_short(prompts: str) -> str:
    """Return a set of prompts by the word that all ids begin with, if they do: `chats (4)`."""
    names = prompts.split(", ")
    first = {name.partition("-")[0] for name in names}
    return (
        f"{first.pop()} ({len(names)})" if len(first) == 1 < len(names) else prompt_words(prompts)
    )


def flagged_if_twice_as_fast(analysis: Analysis) -> float | None:
    """Return the share of runs with drafts that the audit would flag at twice their speed."""
    power = analysis.power
    own = power[(power["factor"] == 2) & (power["forged"] == Forged.DECODING)]
    runs = own["runs"].sum()
    return float((own["impossible"] + own["implausible"]).sum() / runs) if runs else None


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
    numbers = ("fixed", "percent", "thousands", "interval", "memory")
    env.filters.update({name: getattr(number_text, name) for name in numbers})
    env.filters.update(counted=counted, later=later, prompt_words=prompt_words, digest=_digest)
    env.filters.update(prompts_in_short=prompts_in_short, day=lambda time: str(time)[:10])
    return env


def _digest(text: str) -> str:
    """Return the name by which a content security policy allows this inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _joined(*files: Path) -> Markup:
    """Return our own style sheets, or scripts, as one."""
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))  # noqa: S704
