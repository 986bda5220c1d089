"""A suite's summary for the terminal."""

import pandas as pd

from specmoe.analysis.terminal import summarise_suite
from specmoe.config.load import load

from .test_summaries import run


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
    assert text.startswith("Suite temperature: ")
    numbers = [line.split() for line in text.splitlines() if line.strip().startswith("t ")]
    assert [row[3:5] for row in numbers[:2]] == [["0.00", "10.00"], ["0.70", "10.70"]]
    assert [(row[3], row[6]) for row in numbers[2:]] == [("0", "1.20"), ("0.7", "1.12")]
