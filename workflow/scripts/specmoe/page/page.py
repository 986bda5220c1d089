"""The page: one HTML file with the content of the paper, in two languages.

The words are in `paper/site/`, the numbers are those of the analysis. Figures are SVG inside it;
those that show nothing are left out.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup, escape

from specmoe.analysis.cost_model import KINDS
from specmoe.analysis.cost_tables import PAIR
from specmoe.analysis.decision import Answer
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.templates import analysis_templates
from specmoe.analysis.views import GAINS
from specmoe.files import ROOT, replace_text
from specmoe.measure.trace import Recording
from specmoe.paper.documents import cited
from specmoe.tables.exhibits import PAPER, read_figures, tables_of
from specmoe.text import spreadsheet_text
from specmoe.yaml_files import read_yaml

MOST_ROWS = 30
"""Rows of a table on the page, which links the data of all; a campaign may have thousands."""

# Letters are sized for print; on a screen these are as large as the text around them.
PIXELS_A_POINT = 120 / 72

MOST_ROUNDS = 2
"""Rounds of the demonstration on the page; its data have all."""

# The names of columns in the prediction that a reader changes.
_SHORT = {"acceptance_rate": "rate", "speedup_low": "low", "speedup_high": "high"}


def write_page(analysis: Path, trace: Path | None = None) -> None:
    """Render `page/index.html` beside an analysis and its figures, with the data behind its tables.

    `trace` is the recorded demonstration.
    """
    results, out = Analysis.read(analysis), analysis.with_name("page")
    figures = dict(pictures(analysis.with_name("paper") / "figures"))
    recording = Recording.read(trace) if trace else None
    write_data(results, recording, out / "data")
    replace_text(out / "index.html", render_page(results, figures, recording))


def pictures(folder: Path) -> Iterator[tuple[str, Record]]:
    """Yield the page's pictures, by name: the paper's figures as SVG in data URLs, with sizes."""
    for file in sorted(folder.glob("*.svg")):
        drawn = file.read_bytes()
        [size] = re.findall(rb'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"', drawn)
        width, height = (round(PIXELS_A_POINT * float(points)) for points in size)
        address = f"data:image/svg+xml;base64,{b64encode(drawn).decode()}"
        yield file.stem, {"address": address, "width": width, "height": height}


def render_page(
    analysis: Analysis, figures: Mapping[str, Record], recording: Recording | None
) -> str:
    """Return the page as HTML, with the demonstration's record, if there is one."""
    known = cited(analysis)
    top, ticks = scale(known["best"])
    known |= {
        "trace": recording,
        "fitted": [*whatif_pairs(analysis)],
        "gains": GAINS,
        "Answer": Answer,
        "speedups": [row["speedup"] for row in known["advised"] if row["settings"]],
        "top": top,
        "ticks": ticks,
        "wording": read_figures(),
        "tables": tables_of(analysis),
        "most_rows": MOST_ROWS,
        "most_rounds": MOST_ROUNDS,
        "figures": figures,
        "data": data_names(analysis),
        "citation": read_yaml(ROOT / "CITATION.cff"),
    }
    return fill_page("index.html.j2", known, ("style", "trace", "whatif"), ("script", "whatif"))


def fill_page(
    template: str,
    known: Mapping[str, Any],
    styles: Sequence[str],
    scripts: Sequence[str] = ("script",),
) -> str:
    """Return a page of `paper/site` as HTML, with these style sheets and scripts inside it."""
    sources = PAPER / "site"
    zh = Chinese(read_yaml(sources / "chinese.yaml"))
    env = analysis_templates(sources)
    env.filters["digest"] = _digest
    return env.get_template(template).render(
        known,
        style=_joined(*(sources / f"{name}.css" for name in styles)),
        script=_joined(*(sources / f"{name}.js" for name in scripts)),
        pair=pair,
        zh=zh,
        t=zh.beside,
    )


def scale(rows: Sequence[Record]) -> tuple[float, list[float]]:
    """Return the end of an axis that begins at zero and holds the intervals, and its ticks.

    An interval that is too wide to be printed runs off the axis.
    """
    highs = [min(row["speedup_high"], 4 * row["speedup"]) for row in rows]
    ends = [row["speedup"] for row in rows] + highs
    top = 1.06 * max([1.2, *(end for end in ends if not isnan(end))])
    step = 0.25 if top < 2 else 0.5 if top < 4 else float(round(top / 5))
    return top, [step * tick for tick in range(1, int(top / step) + 1)] if rows else []


def write_data(analysis: Analysis, recording: Recording | None, folder: Path) -> None:
    """Write `<table>.csv` and `<table>.parquet` for each of `data_names`, and `trace.json`.

    `columns.csv` says what their columns are. In the CSV, an apostrophe stands before words that a
    spreadsheet would take for a formula.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if recording:
        replace_text(folder / "trace.json", recording.model_dump_json(indent=1) + "\n")
    said = list[tuple[str, ...]]()
    for name in data_names(analysis):
        frame, table = getattr(analysis, name), TABLES[name]
        frame.to_parquet(folder / f"{name}.parquet", index=False)
        file = folder / f"{name}.csv"
        frame.map(spreadsheet_text).to_csv(file, index=False, lineterminator="\n")
        said += [(name, key, kind, table.meanings[key]) for key, kind in table.columns.items()]
    columns = pd.DataFrame(said, columns=["table", "column", "type", "meaning"])
    columns.to_csv(folder / "columns.csv", index=False, lineterminator="\n")


def data_names(analysis: Analysis) -> list[str]:
    """Return the tables of the analysis that have rows."""
    return [name for name in TABLES if len(getattr(analysis, name))]


def pair(english: str, chinese: str) -> Markup:
    """Return words in both languages; the page shows those of the one that is chosen."""
    spans = '<span class="t" lang="en">{}</span><span class="t" lang="zh-CN">{}</span>'
    return Markup(spans).format(english, chinese)  # noqa: S704 (what it formats is escaped)


class Chinese(NamedTuple):
    """Words in Chinese, by the English entries of `chinese.yaml`; others stay as they are.

    An entry may have gaps, `<>`, for words that are translated in their turn.
    """

    entries: Mapping[str, str]

    def __call__(self, words: str) -> str:
        """Return the words in Chinese."""
        if words in self.entries:
            return self.entries[words]
        for english in (entry for entry in self.entries if "<>" in entry):
            if match := re.fullmatch(re.escape(english).replace("<>", "(.+)"), words):
                chinese = self.entries[english]
                for part in match.groups():
                    chinese = chinese.replace("<>", self(part), 1)
                return chinese
        return words

    def beside(self, words: str) -> Markup:
        """Return the words in both languages, once where they are the same; escaped."""
        translated = self(words)
        return escape(words) if translated == words else pair(words, translated)


def _digest(text: str) -> str:
    """Return the name by which a content security policy allows this inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _joined(*files: Path) -> Markup:
    """Return our own style sheets, or scripts, as one."""
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))  # noqa: S704


def whatif_pairs(analysis: Analysis) -> Iterator[Record]:
    """Yield the targets and draft models whose costs were fitted, in the order of tables.

    Names are labels. `knots` are the γ or widths of each kind of cost, `costs` the ms there, and
    `without` the same as fitted without each repeat. With a single repeat `quantile` is null and
    `without` empty. `settings` are those that were measured; `own`: acceptance was not forced.
    """
    settings = analysis.break_even.dropna(subset="speedup").rename(columns=_SHORT)
    settings = settings.assign(own=settings["forced_acceptance"].isna())
    settings = settings[[*PAIR, "gamma", "own", "speedup", *_SHORT.values()]].astype(object)
    measured = dict(iter(settings.where(settings.notna(), None).groupby(PAIR)))
    for pair, costs in analysis.fitted_costs.groupby(PAIR, sort=False):
        fits = [fit for _, fit in costs.groupby("without_repeat")]
        first, (ms, *without) = costs.iloc[0], [_by_kind(fit, "ms") for fit in fits]
        yield {
            "target": first["target_label"],
            "draft": first["draft_label"],
            "engine": first["engine"],
            "knots": _by_kind(fits[0], "at"),
            "costs": ms,
            "without": without,
            "replays": bool(first["replays"]),
            "quantile": None if pd.isna(first["quantile"]) else float(first["quantile"]),
            "widest": int(first["widest"]),
            "settings": records(measured.get(pair, settings[:0]).drop(columns=PAIR)),
        }


def _by_kind(fit: pd.DataFrame, column: str) -> dict[str, list[Any]]:
    return {kind: fit.loc[fit["kind"] == kind, column].tolist() for kind in KINDS}
