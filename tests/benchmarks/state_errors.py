"""Count how often campaigns drawn from recorded series say that the machine's state matters.

The files have draws in a row: columns baseline, baseline_again and drafting, in tokens a second.
"""

import argparse
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from tests.simulated_states import KINDS, Shape, draw  # noqa: E402

SHAPES = [(4, 3, 3, 3), (4, 3, 6, 3), (2, 3, 6, 3), (4, 15, 2, 1), (4, 15, 3, 1)]
SHAPES += [(2, 15, 3, 1), (8, 15, 2, 1)]


def main() -> None:
    """Print a line for each file and shape of a campaign: a share for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=2000, help="campaigns of each kind")
    given = parser.parse_args()
    print("settings, prompts, repeats, targets:", ", ".join(KINDS))
    for file in given.files:
        series = pd.read_csv(file)[["baseline", "baseline_again", "drafting"]].to_numpy()
        for shape in SHAPES:
            random = np.random.default_rng(1)
            shares = [
                np.mean(
                    [
                        draw(series, random, Shape(*shape), kind).line().clear
                        for _ in range(given.times)
                    ]
                )
                for kind in KINDS
            ]
            print(file.stem, *shape, *(f"{share:.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
