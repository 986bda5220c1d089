"""The atlas: what others and the shipped campaigns report of drafting on MoEs, on one page.

Each public row has the verdict of `check_claim` on its own numbers.
"""

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pandas as pd

from specmoe.analysis.check_campaign import analysis_of_packed, reasons_against
from specmoe.analysis.registry import Analysis, records
from specmoe.analysis.templates import machine_of
from specmoe.analysis.views import advised_targets
from specmoe.audit.claims import FACTS, claim_of, judge
from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.files import ROOT, replace_text
from specmoe.models.reported import Speedup, read_reported
from specmoe.page.page import fill_page
from specmoe.runs.shipped import check_manifest

# The model of which most is reported, by MTP; and the axis, which is logarithmic.
_FIRST: Final = "35B-A3B"
_TICKS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)


def write_atlas(out: Path) -> None:
    """Write the atlas as one HTML file. Raises the errors of the shipped campaigns' audits."""
    public = sorted(read_reported(Speedup), key=lambda row: row.middle)
    first = [row for row in public if _FIRST in row.model and row.method == Method.MTP]
    own, refused = list[Speedup](), dict[str, str]()
    for folder in sorted(file.parent for file in ROOT.glob("resources/campaigns/*/manifest.json")):
        with TemporaryDirectory() as results, redirect_stdout(StringIO()):
            analysis = analysis_of_packed(folder, Path(results))
            why = [*reasons_against(analysis, check_manifest(folder))]
        if why:
            refused[analysis.name] = "; ".join(why)
        else:
            own += _of_campaign(analysis)
    known = {
        "first": first,
        "others": [row for row in public if row not in first],
        "own": own,
        "refused": refused,
        "sources": len({row.source for row in public}),
        "methods": {method: facts.label for method, facts in METHODS.items()},
        "verdict": verdict,
        "ticks": _TICKS,
        "place": place,
    }
    replace_text(out, fill_page("atlas.html.j2", known, ("style", "atlas")))


def verdict(row: Speedup) -> str:
    """Return what `check_claim` says of a row's own numbers."""
    facts = {name: fact for name, fact in row.model_dump().items() if name in FACTS}
    if row.method != "other" and is_ngram(row.method):
        facts["draft_ms"] = 0
    return judge(claim_of(facts, row.source, {})).verdict


def place(speedup: float) -> float:
    """Return where a speedup lies on the axis, in percent of its length."""
    share = (log(speedup) - log(_TICKS[0])) / (log(_TICKS[-1]) - log(_TICKS[0]))
    return 100 * min(max(share, 0), 1)


def _of_campaign(analysis: Analysis) -> Iterator[Speedup]:
    """Yield the best setting of each target that was compared, as advice has it.

    Its method is the label of what drafts, its source the campaign, and it prints the answer.
    """
    campaign = records(analysis.campaign)[0]
    for row in records(advised_targets(analysis)):
        if row["settings"]:
            low, high = row["speedup_low"], row["speedup_high"]
            yield Speedup.model_construct(
                model=row["label"],
                method=row["draft_label"],
                gamma=row["gamma"],
                acceptance_rate=row["acceptance_rate"],
                machine=machine_of(campaign),
                engine=f"llama.cpp {campaign['engine_commit']}",
                engine_date=str(campaign["started_at"].date()),
                speedup=row["speedup"],
                low=None if pd.isna(low) else low,
                high=None if pd.isna(high) else high,
                printed=row["answer"],
                source=analysis.name,
            )
