"""Say what moves between stretches of measuring, and what takes it away again.

Usage: python tests/benchmarks/between_sittings.py FOLDER FOLDER FOLDER ... [--figure FILE]

Each FOLDER is a campaign of one machine, results/CAMPAIGN or a shipped one, in the order of time;
they are compared in the settings with a draft that all of them have. A stretch is a sitting only if
hours and a boot lie between: the first table has its times. The others:

spread     how far a setting's logarithms are apart in two stretches, as standard deviations in
           percent, as `statistics.sitting_spread` is one: of the speed alone, of that with a draft,
           of the speedup; what blocks alone would give, and what is beyond them; what of that
           moves all at once, and what is each setting's own; by which side a speedup moves
taken      the share of the square of that distance, of a stretch left out to the mean of the
           others, that a number known of each stretch takes away: the logarithm is less that of the
           number, or less a slope times it that the other stretches give. Below zero, it adds
held       how many estimates of later stretches lie in the intervals of the first ones
"""

import argparse
import json
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.analysis.intervals import (  # noqa: E402
    interval_of_speedup,
    joint_intervals,
    log_means,
)
from specmoe.analysis.sittings import by_sitting, sitting_variance  # noqa: E402
from specmoe.analysis.summaries import CELL, with_speedups  # noqa: E402
from specmoe.config.schema import Statistics  # noqa: E402
from specmoe.figures.style import REFERENCE_COLOUR, WIDTH_IN, applied  # noqa: E402
from specmoe.runs.disturbed import undisturbed  # noqa: E402
from specmoe.runs.pass_times import read_pass_times, undisturbed_passes  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

SETTINGS = Statistics()
SIDES = {"alone": "speed alone", "drafted": "speed with a draft", "speedup": "speedup"}


def main() -> None:
    """Parse the command line, print the tables, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--figure", type=Path, help="an image to draw")
    args = parser.parse_args()
    stretches = len(args.folders)
    pairs = pd.concat(map(pairs_of, args.folders, range(stretches)), ignore_index=True)
    measured = pairs.groupby([*CELL, "target_sha256"])["stretch"].transform("nunique")
    pairs = pairs[measured == stretches]
    logs = pd.concat({side: by_cell(pairs, side) for side in SIDES}, names=["side"])
    known = known_numbers(pairs, args.folders)
    print_stretches(pairs, logs, known)
    print_spread(pairs, logs)
    print_taken(logs, known)
    print_held(pairs, stretches)
    if args.figure:
        draw(pairs, logs, args.figure)


def pairs_of(folder: Path, number: int) -> pd.DataFrame:
    """Return the undisturbed pairs of a campaign, whose blocks bear the number of the stretch."""
    pairs = with_speedups(undisturbed(read_runs(folder / "runs.parquet")))
    return pairs.assign(
        stretch=number,
        block=pairs["block"] + f".{number}",
        alone=pairs["baseline_tokens_per_second"],
        drafted=pairs["tokens_per_second"],
    )


def by_cell(pairs: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return the mean logarithms of a ratio or rate, by cell (rows) and stretch (columns)."""
    means = {
        key: log_means(members, side).mean() for key, members in pairs.groupby([*CELL, "stretch"])
    }
    return pd.Series(means).rename_axis([*CELL, "stretch"]).unstack()


def known_numbers(pairs: pd.DataFrame, folders: list[Path]) -> dict[str, pd.DataFrame]:
    """Return what is known of each stretch beside its runs, as `by_cell` has it.

    `passes` is the logarithm of the speedup that its timed passes would give to one and the same
    text: a single pass of the target over a round's drafting and its pass of γ + 1 tokens.
    """
    cells = pairs[[*CELL, "method"]].drop_duplicates(CELL).set_index(CELL)
    columns = {}
    for number, folder in enumerate(folders):
        hosts = sorted(folder.glob("hosts/*.json")) or [folder / "host.json"]
        facts = [json.loads(host.read_text(encoding="utf-8")) for host in hosts]
        probed = np.mean(np.log([fact["memory_bandwidth_bytes_per_second"] for fact in facts]))
        times = undisturbed_passes(read_pass_times(folder / "pass_times.parquet"))
        times = times[(times["outputs"] == "all") | (times["width"] == 1)]
        ms = np.exp(np.log(times["ms"]).groupby([times["model"], times["width"]]).mean())
        for cell, [method] in zip(cells.index, cells.to_numpy(), strict=True):
            _, target, draft, gamma = cell
            single = ms.get((target, 1), np.nan)
            drafting = gamma * ms.get((draft, 1), np.nan) if method == "draft-simple" else 0.0
            round_ms = drafting + ms.get((target, gamma + 1), np.nan)
            columns[*cell, number] = probed, -np.log(single), np.log(single / round_ms)
    known = pd.DataFrame(columns, index=["bandwidth", "single pass", "passes"]).T
    known.index.names = [*CELL, "stretch"]
    return {name: values.unstack() for name, values in known.items()}


def print_stretches(
    pairs: pd.DataFrame, logs: pd.DataFrame, known: dict[str, pd.DataFrame]
) -> None:
    """Print when the stretches were, and how far each is from the mean of all."""
    frames = {side: logs.loc[side] for side in SIDES} | known
    print("stretch, its begin (UTC), % off the mean of all, % of its runs' time that was stolen")
    print(" " * 25 + "".join(f"{name:>12}" for name in [*frames, "stolen"]))
    off = {name: 100 * centred(frame).mean() for name, frame in frames.items()}
    for stretch, members in pairs.groupby("stretch"):
        values = [one[stretch] for one in off.values()] + [100 * members["steal_share"].mean()]
        shown = "".join(f"{value:12.1f}" for value in values)
        print(f"{stretch:7} {members['started_at'].min():%Y-%m-%d %H:%M} {shown}")


def centred(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each cell's distance from its mean over stretches."""
    return frame.sub(frame.mean(axis=1), axis=0)


def print_spread(pairs: pd.DataFrame, logs: pd.DataFrame) -> None:
    """Print the standard deviations between stretches and their parts."""
    print(f"\nspread between two stretches (%), {len(logs.loc['speedup'])} settings")
    print(f"{'':20} total  blocks  beyond  all settings  own")
    for side, words in SIDES.items():
        frame = logs.loc[side]
        cells, stretches = frame.shape
        errors = centred(frame).to_numpy()
        total = (errors**2).sum() / cells / (stretches - 1)
        noise = np.mean(
            [
                log_means(members, side).var(ddof=1) / members["block"].nunique()
                for _, members in pairs.groupby([*CELL, "stretch"])
            ]
        )
        shift = errors.mean(axis=0)
        rest = ((errors - shift) ** 2).sum() / (cells - 1) / (stretches - 1)
        shared = (shift**2).sum() / (stretches - 1) - rest / cells
        squares = [total, noise, total - noise, shared, rest - noise]
        parts = 100 * np.sqrt(2 * np.clip(squares, 0, None))
        print(f"{words:20}" + "{:6.1f}{:8.1f}{:8.1f}{:14.1f}{:5.1f}".format(*parts))
    speedup, drafted = (centred(logs.loc[side]).to_numpy() for side in ("speedup", "drafted"))
    share = 100 * (speedup * drafted).sum() / (speedup**2).sum()
    print(
        f"of the speedup's square {share:.0f} % is the draft's side, {100 - share:.0f} % the other"
    )


def print_taken(logs: pd.DataFrame, known: dict[str, pd.DataFrame]) -> None:
    """Print what each number takes away of the distance to another stretch."""
    print("\ntaken away (%): as it is, with a slope")
    baseline = {"baseline": logs.loc["alone"]}
    for side, numbers in [("alone", known), ("drafted", baseline | known), ("speedup", known)]:
        for name, number in numbers.items():
            shares = (taken(logs.loc[side], number, fitted=fitted) for fitted in (False, True))
            shown = "".join(f"{100 * share:8.0f}" for share in shares)
            print(f"{SIDES[side]:20} {name:12} {shown}")


def taken(frame: pd.DataFrame, number: pd.DataFrame, *, fitted: bool) -> float:
    """Return the share of the square of a stretch's distance to the mean of the others."""
    number = number.reindex_like(frame)
    frame = frame[number.notna().all(axis=1)]
    number = number.loc[frame.index]
    before = after = 0.0
    for stretch in frame:
        others, numbers = frame.drop(columns=stretch), number.drop(columns=stretch)
        x, y = centred(numbers).to_numpy(), centred(others).to_numpy()
        slope = (x * y).sum() / (x**2).sum() if fitted and x.any() else float(not fitted)
        distance = frame[stretch] - others.mean(axis=1)
        left = distance - slope * (number[stretch] - numbers.mean(axis=1))
        before, after = before + (distance**2).sum(), after + (left**2).sum()
    return 1 - after / before if before else np.nan


def print_held(pairs: pd.DataFrame, stretches: int) -> None:
    """Print how often intervals of the first stretches hold the estimates of the later ones."""
    print(
        "\nestimates of later stretches in the intervals of the first (%): printed, of the advice"
    )
    for first in range(1, stretches):
        held = []
        for _, members in pairs.groupby(CELL):
            numbers = members.drop_duplicates("block").set_index("block")["stretch"]
            own = by_sitting(members[members["stretch"] < first], numbers[numbers < first])
            spread = sitting_variance(own, SETTINGS.sitting_spread)
            printed = interval_of_speedup(own, SETTINGS.confidence)
            advised = joint_intervals({"": own}, SETTINGS.confidence, known={"": spread})[""]
            for _, later in members[members["stretch"] >= first].groupby("stretch"):
                value = np.exp(log_means(later).mean())
                held.append([low <= value <= high for low, high in (printed, advised)])
        shares = " ".join(f"{100 * share:6.1f}" for share in np.mean(held, axis=0))
        print(f"{first:3} {shares}  of {len(held)}")


@applied()
def draw(pairs: pd.DataFrame, logs: pd.DataFrame, path: Path) -> None:
    """Draw each setting's distance from its mean, stretch by stretch, and the mean of all."""
    times = pairs.groupby("stretch")["started_at"].min().dt.strftime("%H:%M")
    figure = Figure(figsize=(WIDTH_IN, 2.2), layout="constrained")
    for axes, side in zip(figure.subplots(1, 3, sharey=True), SIDES, strict=True):
        off = 100 * np.expm1(centred(logs.loc[side]))
        axes.plot(times, off.T, color=REFERENCE_COLOUR, alpha=0.35, linewidth=0.7)
        axes.plot(times, off.mean(), color="#004488", marker="o")
        axes.set_title(SIDES[side])
        axes.tick_params(axis="x", rotation=90)
    figure.supxlabel("begin of the stretch (UTC)")
    figure.supylabel("off the mean (%)")
    figure.savefig(path)


if __name__ == "__main__":
    main()
