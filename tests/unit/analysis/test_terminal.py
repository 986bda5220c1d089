"""A suite's summary for the terminal."""

import pandas as pd

from specmoe.analysis.terminal import summarise_suite
from specmoe.config.load import load

from .test_summaries import run


def test_a_summary_is_ordered_by_gamma_and_prompt_length(study, root):
    runs = pd.DataFrame(
        [
            run("a1", 10.0, suite="prompt_length", prompt="passage-128", n_prompt=128),
            run("a0", 10.0, suite="prompt_length"),
            *(
                run(f"s{g}", 5.0, suite="prompt_length", draft="d", gamma=g, baseline="a0")
                for g in (16, 4, 8)
            ),
        ]
    )
    lines = summarise_suite(runs, "prompt_length", load(study, root)).splitlines()
    assert lines[0] == "Suite prompt_length: Prompt-length sweep, 5 runs"
    numbers = [line.split() for line in lines if line.strip().startswith("t ")]
    assert [row[1:3] for row in numbers[:2]] == [["64", "passage-64"], ["128", "passage-128"]]
    assert [row[2] for row in numbers[2:]] == ["4", "8", "16"]
    assert numbers[2][5] == "0.50"  # speedup


def test_a_suite_of_several_temperatures_has_lines_for_each(study, root):
    runs = [
        run(f"{name}{warm}", rate, suite="temperature", temperature=warm, level=f"{warm:g}",
            block=f"temperature/t/{setting}/{warm:g}/r0", **more)
        for warm in (0.0, 0.7)
        for name, setting, rate, more in [
            ("a", "none/g0", 10.0 + warm, {}),
            ("s", "d/g4", 12.0, {"draft": "d", "gamma": 4, "baseline": f"a{warm}"}),
        ]
    ]  # fmt: skip
    text = summarise_suite(pd.DataFrame(runs), "temperature", load(study, root))
    numbers = [line.split() for line in text.splitlines() if line.strip().startswith("t ")]
    assert [row[3:5] for row in numbers[:2]] == [["0.00", "10.00"], ["0.70", "10.70"]]
    assert [(row[3], row[6]) for row in numbers[2:]] == [("0", "1.20"), ("0.7", "1.12")]
