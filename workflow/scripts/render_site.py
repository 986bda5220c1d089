"""Render the page of a campaign from its analysis, with the data beside it."""

import json
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.command_line import script
from specmoe.files import replace_text
from specmoe.measure.trace_record import Recording
from specmoe.page.data import write_data
from specmoe.page.page import render_page


@script
def main(
    analysis: Path,
    figures: Path,
    paper: Path,
    citation: Path,
    out: Path,
    data: Path,
    trace: Path | None = None,
) -> None:
    analysis = Analysis.read(analysis)
    recording = Recording.read(trace) if trace else None
    write_data(analysis, recording, data)
    page = render_page(
        analysis,
        json.loads(figures.read_text(encoding="utf-8")),
        recording,
        paper=paper,
        citation=citation,
    )
    replace_text(out, page)
