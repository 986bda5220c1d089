"""A run that the machine disturbed at every attempt is in no estimate, nor is its pair."""

import pandas as pd

from specmoe.runs.schema import excluded, undisturbed


def run(name, baseline=None, *, gamma=0, taken_away=None):
    return {
        "run": name,
        "target": "t",
        "gamma": gamma,
        "baseline": baseline,
        "taken_away": taken_away,
    }


RUNS = pd.DataFrame(
    [
        run("quiet"),
        run("busy", taken_away="a thread waited"),
        run("a4", "quiet", gamma=4),
        run("a8", "quiet", gamma=8, taken_away="a thread waited"),
        run("b4", "busy", gamma=4),
        run("b8", "busy", gamma=8),
    ]
)


def test_a_disturbed_run_leaves_and_a_disturbed_baseline_takes_its_pairs_along():
    assert undisturbed(RUNS)["run"].tolist() == ["quiet", "a4"]
    assert excluded(RUNS)["run"].tolist() == ["busy", "a8", "b4", "b8"]
    assert undisturbed(undisturbed(RUNS)).equals(undisturbed(RUNS))
