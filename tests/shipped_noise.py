"""Noise of shipped campaigns and of their history: what `resources/noise.yaml` is made of.

Usage: python tests/shipped_noise.py

It writes that file. Sessions are pairs of campaigns of the history that measured the same settings
on one machine, hours apart, with arms in turn: all there are. That needs a clone with the history;
blocks and predictions are those of the campaigns in this tree, which a test computes again.
"""

import io
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from sys import path as module_path
from typing import Any

import numpy as np
import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[1]
module_path[:0] = [str(ROOT / "workflow/scripts")]

from specmoe.analysis.gamma_curves import gamma_curves, squared_errors  # noqa: E402
from specmoe.analysis.intervals import mean_speedup  # noqa: E402
from specmoe.analysis.labels import is_no_control  # noqa: E402
from specmoe.analysis.noise import compare_sessions  # noqa: E402
from specmoe.analysis.summaries import SETTING, make_pairs, usual, with_conditions  # noqa: E402
from specmoe.audit.draft_rounds import scores_by_run  # noqa: E402
from specmoe.config.load import merge_catalogs, read_mapping  # noqa: E402
from specmoe.models.info import load_infos  # noqa: E402
from specmoe.plan.gate import load_campaign  # noqa: E402
from specmoe.runs.other_tables import (  # noqa: E402
    read_agreement,
    read_pass_times,
    undisturbed_passes,
)
from specmoe.runs.schema import read_runs, undisturbed  # noqa: E402

PAIRS = [
    ("demo", "a1985af3", "4d029440"),
    ("demo", "2729cf4a", "0fc29119"),
    ("demo", "58dcaadd", "0f69e8b5"),
    ("methods", "8dbbcb00", "fe9f4cc0"),
]
SAME = ["target_sha256", "method", "draft_sha256", "gamma", "forced_acceptance"]
SAME += ["p_min", "n_match", "temperature"]
HEAD = """\
# How far measurements of one thing are apart, as standard deviations of the logarithm of speedup:
# the draws that priors of noise are the root mean squares of, see specmoe.analysis.noise.
# Written by tests/shipped_noise.py.
# sessions: what one of two sessions of a machine differs by from their mean, all settings together
#   (common) and each by itself (own); by campaign and the commits that shipped them.
# blocks: of a setting, pooled over the settings of a campaign.
# predictions: speedups that are predicted from timed passes alone, beside those that were measured.
"""


def main() -> None:
    """Write the file."""
    found: dict[str, dict[str, Any]] = {"sessions": {}, "blocks": {}, "predictions": {}}
    for name, *commits in PAIRS:
        shift = compare_sessions(both_sessions(name, *commits))
        assert shift
        found["sessions"][" ".join([name, *commits])] = shift._asdict()
    for folder in sorted((ROOT / "resources/campaigns").iterdir()):
        for kind, row in deviations_of(folder).items():
            found[kind][folder.name] = row
    lines = [
        f"{kind}:\n" + "".join(f"  {name}: {rounded(row)}\n" for name, row in rows.items())
        for kind, rows in found.items()
    ]
    (ROOT / "resources/noise.yaml").write_text(HEAD + "".join(lines))


def rounded(row: dict[str, Any]) -> str:
    """Return a row as YAML in one line."""
    row = {name: round(value, 4) for name, value in row.items()}
    return yaml.safe_dump(row, default_flow_style=True, sort_keys=False).strip()


def both_sessions(name: str, *commits: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Return the compared runs of each setting that a campaign had at both commits."""
    first, second = (dict(list(settings_then(name, one))) for one in commits)
    return ((first[key], second[key]) for key in first.keys() & second.keys())


def settings_then(name: str, commit: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Return the compared runs of a campaign's settings as a commit shipped them."""
    file = f"{commit}:resources/campaigns/{name}/runs.parquet"
    shown = subprocess.run(["git", "show", file], cwd=ROOT, capture_output=True, check=True)
    runs = pd.read_parquet(io.BytesIO(shown.stdout))
    runs = runs.rename(columns={"imposed_acceptance": "forced_acceptance"})
    runs = runs.reindex(columns=[*dict.fromkeys([*runs, *SAME])])
    runs["p_min"] = runs["p_min"].astype(float).fillna(0)
    rates = runs.set_index("run")["tokens_per_second"].astype(float)
    speedup = runs["tokens_per_second"].astype(float) / runs["baseline"].map(rates)
    known = runs.assign(speedup=speedup)[speedup.notna()]
    for key, own in known.groupby(SAME, dropna=False):
        yield json.dumps(key, default=str), own


def deviations_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a shipped campaign, by kind; none of what it did not measure."""
    overlay = read_mapping(folder / "campaign.yaml")
    with tempfile.TemporaryDirectory() as results:
        campaign = load_campaign(merge_catalogs(ROOT, overlay), ROOT, Path(results))
    config, infos = campaign.config, load_infos(campaign.data / "models.json")
    runs = with_conditions(read_runs(campaign.data / "runs.parquet"))
    pairs = make_pairs(runs, config.audit.unrelated_drafts, infos, config.workloads)
    paired = pairs[pairs["counts"] & pairs["paired"].astype(bool)]
    kept = paired[is_no_control(paired) | paired["forced_acceptance"].notna()]
    settings = kept.groupby([*SETTING, "condition"], dropna=False)
    means = [mean_speedup(rows) for _, rows in settings]
    known = [one for one in means if one.repeated]
    degrees = np.array([one.degrees for one in known])
    squares = np.array([one.error**2 * one.number for one in known])
    deviation = float(np.sqrt((squares * degrees).sum() / degrees.sum()))
    found = {"blocks": {"settings": len(known), "deviation": deviation}}
    if campaign.agreement:
        scores = scores_by_run(read_agreement(*campaign.agreement))
        passes = undisturbed_passes(read_pass_times(*campaign.pass_times))
        own = usual(paired[is_no_control(paired)])
        curves = gamma_curves(own, undisturbed(runs), scores, [], passes, config.statistics)
        squares = squared_errors(curves)
        if squares:
            number, deviation = int(curves["speedup"].notna().sum()), np.sqrt(np.mean(squares))
            found["predictions"] = {"settings": number, "deviation": float(deviation)}
    return found


if __name__ == "__main__":
    main()
