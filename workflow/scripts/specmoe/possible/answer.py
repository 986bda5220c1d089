"""The answer about one claim, or about each line of a file of claims."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specmoe.config.audit import AuditSettings
from specmoe.errors import ConfigError
from specmoe.plan.machine import bandwidth_by_chip
from specmoe.possible.claim import claim_of, read_claims
from specmoe.possible.judge import Judged, Verdict, judge
from specmoe.words import counted


def answer(
    claim: dict[str, Any], claims: Path | None, settings: AuditSettings, chips: Path, out: Path
) -> None:
    """Print whether a claim can be true, or each of a CSV, whose verdicts go to the folder `out`.

    `chips` is the table of known bandwidths; with `claims`, `claim` is what all of them share.
    Raises ConfigError for claims that cannot be read, after the answers about the others.
    """
    bandwidths = bandwidth_by_chip(chips)
    if not claims:
        if not claim:
            raise ConfigError("config: claim: say what is known, or name a file: claims=FILE")
        print("\n".join(_describe(judge(claim_of(claim, "claim", bandwidths), settings))))
        return
    asked = list(read_claims(claims, claim, bandwidths))
    judged = [judge(one, settings) for one in asked if not isinstance(one, ConfigError)]
    out.mkdir(parents=True, exist_ok=True)
    table = out / f"{claims.stem}_verdicts.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("name", "verdict", "without", "why"))
        for one in judged:
            rows.writerow((one.facts.claim.name, one.verdict, " ".join(one.without), one.why))
    print("\n".join(line for one in judged for line in _describe(one)))
    counts = Counter(one.verdict for one in judged)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    print(f"{counted(len(judged), 'claim')}: {told}\n{table}")
    if faults := [str(one) for one in asked if isinstance(one, ConfigError)]:
        print("\n".join(faults))
        raise ConfigError(
            f"{claims}: {len(faults)} of {len(asked)} lines cannot be read: see above"
        )


def _describe(judged: Judged) -> Iterator[str]:
    claim = judged.facts.claim
    without = f" without {', '.join(judged.without)}" if judged.without else ""
    yield f"{claim.name or 'This claim'}: {judged.verdict.upper()}{without}"
    told = [f"{bound.name}, {bound.verdict}: {bound.why}" for bound in judged.bounds]
    if not {"weights_gb", "bandwidth_gb_s"} <= set(claim.facts):
        told.append("bandwidth, not asked: it takes weights_gb, and bandwidth_gb_s or chip")
    yield from (f"  {line}" for line in told)
