"""Count how often each bound of `possible` marks true comparisons, and the same made too fast.

Usage: python tests/benchmarks/possible_power.py [--out resources/possible/power.csv]

A benchmark, not a test: it judges nothing. It makes a claim of every cell of the shipped campaigns,
as somebody would report it: mean speeds, the acceptance rate, the drafted tokens of a round, the
draft's own speed where it ran alone, sizes, and the machine's bandwidth. Left out is `artefact`, of
failing decodes. A bound marks what it refutes; that of expected experts what it would refute if
tokens chose evenly. Nothing is timed, so the machine may be busy.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.analysis.summaries import with_speedups  # noqa: E402
from specmoe.audit.evidence import Bandwidth  # noqa: E402
from specmoe.config.audit import AuditSettings  # noqa: E402
from specmoe.config.block import MEASURED_BY, NO_DRAFT  # noqa: E402
from specmoe.models.card import load_cards  # noqa: E402
from specmoe.models.sizes import size_of_card  # noqa: E402
from specmoe.possible.claim import Claim, claim_of  # noqa: E402
from specmoe.possible.judge import Verdict, judge  # noqa: E402
from specmoe.possible.power import COLUMNS, FACTORS  # noqa: E402
from specmoe.runs.disturbed import undisturbed  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

CAMPAIGNS = ROOT / "resources/campaigns"
LEFT_OUT = {"artefact"}
_CELL = ["suite", "target", "draft", "gamma"]
_SETTINGS = AuditSettings()


def claims(folder: Path) -> Iterator[Claim]:
    """Yield a claim for each cell of a packed campaign."""
    runs = undisturbed(read_runs(folder / "runs.parquet"))
    cards = load_cards(folder / "models.json")
    bandwidth = Bandwidth.of(json.loads((folder / "host.json").read_text()))
    alone = runs[runs["draft"] == NO_DRAFT].groupby("target")["tokens_per_second"].mean()
    compared = with_speedups(runs)
    for cell, rows in compared[compared["rounds"] > 0].groupby([*MEASURED_BY, *_CELL]):
        first = rows.iloc[0]
        drafted, accepted, rounds = (rows[key].sum() for key in ("drafted", "accepted", "rounds"))
        if not drafted:
            continue
        size = size_of_card(cards[first["target_model"]])
        facts: dict[str, Any] = {
            "name": f"{folder.name} {'/'.join(map(str, cell))}",
            "baseline_tokens_per_second": rows["baseline_tokens_per_second"].mean(),
            "claimed_tokens_per_second": rows["tokens_per_second"].mean(),
            "gamma": max(first["gamma"], drafted / rounds),
            "acceptance_rate": accepted / drafted,
            "drafted_per_round": drafted / rounds,
            "weights_gb": size.file_bytes / 1e9,
            "experts": size.experts,
            "requests": first["concurrency"],
        }
        if size.experts:
            facts |= {"experts_used": size.experts_used, "active_gb": size.pass_bytes(1) / 1e9}
        else:
            facts |= {"weights_gb": size.always_read_bytes / 1e9}
        draft = first["draft_model"]
        if draft in cards:
            facts["draft_gb"] = size_of_card(cards[draft]).pass_bytes(1) / 1e9
            if draft in alone.index and first["method"] == "draft":
                facts["draft_tokens_per_second"] = alone[draft]
        if bandwidth is not None:
            facts["bandwidth_gb_s"] = bandwidth.most(_SETTINGS) / 1e9
        yield claim_of(facts, "a cell", {})


def count() -> list[dict[str, Any]]:
    """Return the rows of the table: comparisons and marks of each bound, and refutations of all."""
    true = [
        claim
        for folder in sorted(CAMPAIGNS.iterdir())
        if folder.name not in LEFT_OUT
        for claim in claims(folder)
    ]
    comparisons: Counter[str] = Counter()
    marked: Counter[tuple[str, float]] = Counter()
    for claim in true:
        for factor in (1.0, *FACTORS):
            rate = claim.claimed_tokens_per_second
            judged = judge(replace(claim, claimed_tokens_per_second=rate * factor), _SETTINGS)
            marks = {bound.name for bound in judged.bounds if bound.verdict == Verdict.IMPOSSIBLE}
            marks |= {"all"} if marks else set()
            # It never refutes where nobody counted the experts.
            doubts = {bound.name for bound in judged.bounds if bound.verdict == Verdict.UNDECIDED}
            marks |= doubts & {"expected experts"}
            marked.update((name, factor) for name in marks)
            if factor == 1:
                comparisons.update({"all", *(bound.name for bound in judged.bounds)})
                if marks:
                    print(f"{claim.name}: {judged.why}", file=sys.stderr)
    return [
        dict(
            zip(
                COLUMNS,
                (name, comparisons[name], *(marked[name, factor] for factor in (1.0, *FACTORS))),
                strict=True,
            )
        )
        for name in sorted(comparisons, key=lambda name: (name == "all", name))
    ]


def main() -> None:
    """Parse the command line, count, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the table as CSV; without it, it is printed")
    args = parser.parse_args()
    out = args.out.open("w", encoding="utf-8", newline="") if args.out else sys.stdout
    table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(count())


if __name__ == "__main__":
    main()
