"""The page: one file of HTML that says of a campaign what its paper says, in two languages.

The words are in `paper/site/`, the numbers are those of the paper's tables, figures and macros.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup, escape

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import advised_targets, ordered_models, records, table, whole_audit
from specmoe.measure.trace_record import Recording
from specmoe.page.data import data_names
from specmoe.page.figures import Picture
from specmoe.page.tables import page_tables
from specmoe.page.templates import environment, plain
from specmoe.page.trace import trace_context
from specmoe.paper.macros import named_macros, switches


def render_page(
    analysis: Analysis,
    figures: Mapping[str, Picture],
    recording: Recording | None,
    *,
    sources: Path,
    captions: Path,
    citation: Path,
) -> str:
    """Return the page as HTML; the same input gives the same page.

    `figures` are those of `figures.page_figures`, `recording` is the demonstration's, if the
    campaign has one, `sources` is `paper/site`, `captions` the folder of the figures' captions,
    `citation` the file CITATION.cff.
    """
    translate = translator(_read(sources / "chinese.yaml"))
    return (
        environment(sources)
        .get_template("index.html.j2")
        .render(
            style=_joined(sources / "style.css", sources / "trace.css"),
            script=_joined(sources / "script.js", sources / "trace.js"),
            trace=trace_context(recording) if recording else None,
            pair=pair,
            span=span,
            t=translate,
            kind=kind_of(analysis),
            n={name: plain(macro.value) for name, macro in named_macros(analysis).items()},
            on=switches(analysis),
            counts=whole_audit(analysis),
            advised=records(advised_targets(analysis)),
            mixtures=_mixtures(analysis),
            printed=_printed(analysis),
            wording=_read(sources / "captions.yaml"),
            captions={
                path.stem: " ".join(path.read_text(encoding="utf-8").split())
                for path in sorted(captions.glob("*.rst"))
            },
            tables=page_tables(analysis),
            figures=figures,
            data=data_names(analysis),
            citation=_read(citation),
        )
    )


def kind_of(analysis: Analysis) -> str:
    """Return what sort of campaign it is, as the page's words tell them apart.

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
    """Return what gives words in both languages, or as they are where there is no Chinese for them.

    What it is given may come from a configuration.
    """

    def translate(words: str) -> Markup:
        return pair(words, chinese[words]) if words in chinese else escape(words)

    return translate


def _mixtures(analysis: Analysis) -> list[dict[str, Any]]:
    models = ordered_models(analysis)
    return records(models[models["family"] == "moe"])


def _printed(analysis: Analysis) -> dict[str, str]:
    """Return the study's numbers as printed, by their words in `resources/reported/`."""
    compared = table(analysis, "comparison")
    return dict(zip(compared["what"], compared["printed"], strict=True))


def _joined(*files: Path) -> Markup:
    """Return our own style sheets, or scripts, as one."""
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))  # noqa: S704


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
