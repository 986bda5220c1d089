"""A suite's summary for the terminal."""

import pandas as pd

from specmoe.config_checks import load
from specmoe.summary import summarise_suite

from .test_statistics import run


def test_a_suite_is_told_by_rising_gamma_and_prompt_length(study, root):
    runs = pd.DataFrame(
        [
            run("a1", 10.0, suite="F", prompt="passage-128", n_prompt=128),
            run("a0", 10.0, suite="F"),
            *(run(f"s{g}", 5.0, suite="F", draft="d", gamma=g, baseline="a0") for g in (16, 4, 8)),
        ]
    )
    lines = summarise_suite(runs, "F", load(study, root)).splitlines()
    assert lines[0] == "Suite F: Prompt-length sweep, 5 runs"
    numbers = [line.split() for line in lines if line.strip().startswith("t ")]
    assert [row[1:3] for row in numbers[:2]] == [["64", "passage-64"], ["128", "passage-128"]]
    assert [row[2] for row in numbers[2:]] == ["4", "8", "16"]
    assert numbers[2][5] == "0.50"  # speedup
