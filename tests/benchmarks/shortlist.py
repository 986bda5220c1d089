"""Compare the answers and machine time of a campaign with those of its shortlist.

Usage: python tests/benchmarks/shortlist.py FOLDER OVERLAY [--alone runs.parquet]

FOLDER is a packed campaign, or one that was measured (results/<campaign>); OVERLAY is the file that
`snakemake shortlist` wrote for it; `--alone` are the runs that it measured for that. The rows of
the settings in the overlay are advised as if nothing else had been measured. Time is that of runs,
of starting their engines and of warming them up; timed passes and readings are not in it. Nothing
is measured, so the machine may be busy.
"""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd
import yaml
from snakemake.utils import update_config

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.analysis.build import analyse  # noqa: E402
from specmoe.analysis.summaries import with_speedups  # noqa: E402
from specmoe.audit.evidence import Bandwidth, gather_evidence  # noqa: E402
from specmoe.audit.tables import Audit  # noqa: E402
from specmoe.config.matrix import list_blocks  # noqa: E402
from specmoe.config.schema import Config, read_config  # noqa: E402
from specmoe.files import read_record  # noqa: E402
from specmoe.models.card import load_cards  # noqa: E402
from specmoe.models.sizes import sizes_of_cards  # noqa: E402
from specmoe.runs.disturbed import undisturbed  # noqa: E402
from specmoe.runs.pass_times import read_pass_times  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402


def main() -> None:
    """Parse the command line, print both answers of each target, and the machine time of both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a campaign with its runs")
    parser.add_argument("overlay", type=Path, help="its shortlist.yaml")
    parser.add_argument("--config", type=Path, help="its config.json, where the folder has none")
    parser.add_argument("--alone", type=Path, help="the runs that the shortlist was made of")
    args = parser.parse_args()
    config = read_config(args.config or args.folder / "config.json")
    short = json.loads(config.model_dump_json())
    update_config(short, yaml.safe_load(args.overlay.read_text()))
    listed = Config.model_validate(short)
    runs = read_runs(args.folder / "runs.parquet")
    kept = runs[runs["run"].isin(runs_of(listed))]
    alone = read_runs(args.alone) if args.alone else runs.head(0)
    print("target        all settings           the shortlist's")
    every, some = answers(runs, config, args.folder), answers(kept, listed, args.folder)
    for target, answer in every.items():
        print(f"{target:12}  {answer:21}  {some.get(target, '-')}")
    print(f"settings: {settings(runs)} and {settings(kept)}")
    print(f"minutes: {minutes(runs):.1f} and {minutes(kept):.1f} + {minutes(alone):.1f} before")


def runs_of(config: Config) -> set[str]:
    """Return the ids of the runs that a configuration asks for."""
    return {
        block.run_id(side, source.prompt, number)
        for block in list_blocks(config, gpu=False)
        for side in block.sides
        for source in block.prompts
        for number in range(block.passes)
    }


def answers(runs: pd.DataFrame, config: Config, folder: Path) -> dict[str, str]:
    """Return the answer for each target, with the best setting where that is *on*."""
    cards, host = load_cards(folder / "models.json"), read_record(folder / "host.json")
    audit = Audit.of(
        gather_evidence(runs, sizes_of_cards(cards, {}), Bandwidth.of(host), config.audit)
    )
    compared = with_speedups(undisturbed(runs))
    found = analyse(runs, compared, config, cards, host, audit, read_pass_times(None)).advice
    return {
        row["target"]: row["answer"]
        + (f", {row['draft']} γ = {row['gamma']}" if row["answer"].startswith("switch on") else "")
        for row in found.to_dict("records")
    }


def settings(runs: pd.DataFrame) -> int:
    """Return how many settings runs have, controls and imposed ones too."""
    drafted = runs[runs["gamma"] > 0]
    return len(drafted.groupby(["suite", "target", "draft", "gamma"]))


def minutes(runs: pd.DataFrame) -> float:
    """Return the minutes that runs took, with starting and warming up their engines."""
    started = runs.drop_duplicates(["block", "draft", "gamma", "imposed_acceptance"])
    ms = runs[["prompt_ms", "decode_ms"]].sum().sum()
    ms += started[["start_ms", "warm_up_ms"]].sum().sum()
    return float(ms) / 60_000


if __name__ == "__main__":
    main()
