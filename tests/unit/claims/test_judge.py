"""Each predicate gives every verdict that it can; the published rows have verdicts with reasons."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import yaml

from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.claims.judge import PREDICATES, Claim, judge_claims, read_claims
from specmoe.claims.predicates import CONSTRUCTED
from specmoe.claims.verdicts import Comparison, Level, Share, conclude
from specmoe.errors import ConfigError

from ..paper_analyses import (
    MODELS,
    baseline_runs,
    cells_of,
    costed,
    full,
    several_ways,
    single,
    speculative_runs,
    with_categories,
    without_drafts,
)
from ..planted_twins import with_twins
from ..published_study import ROOT, needs_csv
from ..rendered_tables import macros

CLAIMS = ROOT / "config/claims.yaml"
SUPPORTED, CONTRADICTED = "supported", "contradicted"
IMPOSSIBLE_ROWS = "rests on impossible rows"
INCONCLUSIVE, NOT_TESTABLE = "inconclusive", "not testable"


def model(like, **changed):
    """Return a model that differs from one of MODELS."""
    return MODELS[MODELS["model"] == like].assign(**changed)


ALL_MODELS = pd.concat(
    [
        MODELS,
        model("dense_4b", model="dense_9b", label="Dense 9B", parameters_total=9_000_000_000,
              parameters_active=9_000_000_000, size_bytes=18_000_000_000),
        model("moe_q4", model="moe_q8", label="MoE Q8", size_bytes=38_000_000_000),
        model("moe_q4", model="draft_moe", label="MoE draft", parameters_total=3_000_000_000,
              size_bytes=3_000_000_000),
    ],
    ignore_index=True,
)  # fmt: skip


def blocks_of(ends):
    """Return the rates of two blocks whose 95 % interval has these ends; one rate is one block."""
    middle, reach = np.log(ends).mean(), np.ptp(np.log(ends)) / 2
    # Two blocks at a distance d from their mean: Student's t with one degree of freedom, times d.
    distance = reach / student_quantile(1, 0.95)
    return [float(np.exp(middle + side * distance)) for side in (-1, 1)][: len(ends)]


def cell(target, draft, gamma, *ends, prompt="code", accepted=None, suite="B"):
    """Return the runs of a cell by the ends of its interval; half of 10 γ tokens are accepted."""
    runs = speculative_runs(suite, target, draft, gamma, blocks_of(ends), prompt)
    return [run if accepted is None else run | {"accepted": accepted} for run in runs]


def alone(target, *ends):
    """Return runs without a draft, by the ends of their interval."""
    rates = blocks_of(ends)
    runs = baseline_runs([target], ["passage-64"], len(rates))
    return [
        run | {"suite": "A", "block": f"A{run['block']}", "run": f"A{run['run']}"}
        | {"tokens_per_second": rate}
        for run, rate in zip(runs, rates, strict=True)
    ]  # fmt: skip


def with_baselines(rows: Iterable[dict]):
    """Return rows after the baselines, at 50 tok/s, that their runs are paired with."""
    drafted = [row for row in rows if row["draft"] != "none"]
    targets, prompts = ({row[key] for row in drafted} for key in ("target", "prompt"))
    repeats = max((int(row["block"].rpartition("/")[2]) + 1 for row in drafted), default=1)
    return [*baseline_runs(sorted(targets), sorted(prompts), repeats), *rows]


def campaign(*groups, **tables):
    """Return the analysis of groups of rows with their baselines; `tables` replace its own."""
    rows = with_baselines([row for group in groups for row in group])
    return replace(cells_of(rows), **({"models": ALL_MODELS} | tables))


def judged(analysis, predicate, **parameters):
    """Return what an analysis, all of one way, says of a claim."""
    claim = Claim(words="It is so.", place="Here", predicate=predicate, parameters=parameters)
    [row] = judge_claims({"it": claim}, analysis).to_dict("records")
    return row


def with_marked(analysis, count, column="impossible", **cell):
    """Return an analysis whose audit marks so many runs of each of some cells."""
    marked = analysis.marked.copy()
    marked.loc[(marked[list(cell)] == pd.Series(cell)).all(axis=1), column] = count
    return replace(analysis, marked=marked)


def audited(**counts):
    """Return the audit's counts of one cell, and of its target's runs without a draft."""
    checks = [
        f"{check}_{outcome}"
        for check in ("losslessness", "determinism")
        for outcome in ("passed", "failed", "not_applicable")
    ]
    way = {"protocol": "paired", "engine": "current-cpu", "target": "moe_q4", "runs": 2}
    zero = dict.fromkeys([*checks, "marked", "impossible", "implausible"], 0)
    plain = way | zero | {"draft": "none", "gamma": 0, "losslessness_not_applicable": 2}
    drafted = way | zero | {"draft": "draft_0.8b", "gamma": 4} | counts
    return pd.DataFrame([plain, drafted])


@pytest.fixture(scope="module")
def claims():
    return read_claims(CLAIMS)


@cache
def verdicts_on(make):
    """Return the verdicts on all claims by one of the usual analyses."""
    return judge_claims(read_claims(CLAIMS), make())


SMALL, LARGE = "draft_0.8b", "draft_2b"
# Cells by γ and the ends of their intervals.
moe, moe_2b = partial(cell, "moe_q4", SMALL), partial(cell, "moe_q4", LARGE)
moe_q8, dense_4b, dense_9b = (partial(cell, f, SMALL) for f in ("moe_q8", "dense_4b", "dense_9b"))
MOE = moe(4, 60, 62)  # 1.20 to 1.24
DENSE = dense_4b(4, 60, 62)


def curve(*rates_by_gamma, draft=SMALL, target="moe_q4"):
    """Return cells at γ = 4, 8, ... by their rates."""
    return [
        run
        for step, rates in enumerate(rates_by_gamma)
        for run in cell(target, draft, 4 * 2**step, *rates)
    ]


def by_mtp(*ends):
    """Return the runs of a cell that no draft model drafts in."""
    way = {"method": "draft-mtp", "draft_model": None}
    return [run | way for run in cell("moe_q4", "mtp", 4, *ends)]


PREDICATE_CASES = {
    "within": [
        (SUPPORTED, [MOE], {"of": "speedup", "low": 1.1}),
        (CONTRADICTED, [MOE], {"of": "speedup", "low": 1.3}),
        (INCONCLUSIVE, [MOE], {"of": "speedup", "high": 1.22}),
        (NOT_TESTABLE, [DENSE], {"of": "speedup", "family": "moe"}),
        # Nothing is claimed of a target with options of the engine.
        (SUPPORTED, [MOE, cell("moe_q4+poll=0", SMALL, 4, 50, 51)], {"of": "speedup", "low": 1.1}),
        (NOT_TESTABLE, [cell("moe_q4+poll=0", SMALL, 4, 50, 51)], {"of": "speedup", "low": 1.1}),
        # 1.196 to 1.198 rounds to the 1.20 that was printed.
        (SUPPORTED, [moe(4, 59.8, 59.9)], {"of": "speedup", "low": 1.2, "digits": 2}),
        (CONTRADICTED, [moe(4, 59.8, 59.9)], {"of": "speedup", "low": 1.2}),
        # The 2B draft is not the smallest, and γ = 8 is not 4.
        (CONTRADICTED, [MOE, moe_2b(4, 70, 71), moe(8, 70, 71)],
         {"of": "speedup", "draft": "smallest", "gammas": [4], "low": 1.3}),
        # The study's drafts are models.
        (SUPPORTED, [MOE, by_mtp(40, 41)], {"of": "speedup", "low": 1.1}),
        (NOT_TESTABLE, [by_mtp(40, 41)], {"of": "speedup"}),
        # A target that drafts for itself is a control.
        (NOT_TESTABLE, [cell("draft_2b", LARGE, 4, 60, 62)], {"of": "speedup"}),
        (SUPPORTED, [moe(4, 60, accepted=1)], {"of": "acceptance", "high": 4}),
        (CONTRADICTED, [MOE], {"of": "acceptance", "high": 4}),  # 50 %
        (NOT_TESTABLE, [MOE], {"of": "acceptance", "draft_family": "moe"}),
        (SUPPORTED, [cell("moe_q4", "draft_moe", 4, 60, 60)],
         {"of": "acceptance", "draft_family": "moe", "low": 40}),
        # Lengths count where they are asked for, and not among texts.
        *((verdict, [MOE, moe(8, 50, 51, prompt="passage-64", suite="F")],
           {"of": "speedup", "cells": cells, "low": 1.1})
          for cells, verdict in [
              ("lengths", CONTRADICTED), ("texts", SUPPORTED), ("all", CONTRADICTED)
          ]),
        # In a campaign without texts all cells count.
        (SUPPORTED, [moe(8, 60, 61, prompt="passage-64", suite="F")],
         {"of": "speedup", "low": 1.1}),
    ],
    "changes_with_gamma": [
        (SUPPORTED, [curve([50, 51], [52, 53], [54, 55])], {"of": "speedup", "rises": True}),
        (CONTRADICTED, [curve([50, 51], [60, 61], [55, 56])], {"of": "speedup", "rises": True}),
        (INCONCLUSIVE, [curve([50, 53], [52, 55])], {"of": "speedup", "rises": True}),
        (NOT_TESTABLE, [MOE], {"of": "speedup", "rises": True}),
        (SUPPORTED, [moe(4, 50, accepted=9), moe(8, 50, accepted=9)],
         {"of": "acceptance", "rises": False}),
        (CONTRADICTED, [curve([50, 50], [50, 50])], {"of": "acceptance", "rises": False}),
    ],
    "gains_beyond_gamma": [
        (SUPPORTED, [curve([50, 51], [52, 53])], {"beyond": 4}),
        (CONTRADICTED, [curve([52, 53], [50, 51])], {"beyond": 4}),
        (INCONCLUSIVE, [curve([50, 53], [51, 55])], {"beyond": 4}),
        (NOT_TESTABLE, [curve([50, 51], [52, 53])], {"beyond": 8}),
        # One of the larger γ is enough.
        (SUPPORTED, [curve([50, 51], [40, 41], [52, 53])], {"beyond": 4}),
    ],
    "smallest_draft_and_largest_gamma_are_best": [
        (SUPPORTED, [curve([50, 51], [60, 61]), curve([40, 41], [50, 51], draft=LARGE)], {}),
        (CONTRADICTED, [curve([50, 51], [60, 61]), curve([70, 71], [50, 51], draft=LARGE)], {}),
        (INCONCLUSIVE, [curve([50, 51], [60, 62]), curve([40, 41], [61, 63], draft=LARGE)], {}),
        (NOT_TESTABLE, [curve([50, 51], [60, 61])], {}),
        (NOT_TESTABLE, [MOE, moe_2b(4, 50, 51)], {}),
    ],
    "smaller_draft_gains_more": [
        (SUPPORTED, [MOE, moe_2b(4, 50, 52)], {}),
        (CONTRADICTED, [MOE, moe_2b(4, 63, 64)], {}),
        (INCONCLUSIVE, [MOE, moe_2b(4, 61, 64)], {}),
        (NOT_TESTABLE, [MOE, moe_2b(8, 50, 52)], {}),
        # The lead is 0.16 to 0.24.
        *((verdict, [MOE, moe_2b(4, 50, 52)], {"low": 0.1, "high": high})
          for high, verdict in [(0.3, SUPPORTED), (0.15, CONTRADICTED), (0.2, INCONCLUSIVE)]),
    ],
    "larger_draft_is_accepted_more": [
        (SUPPORTED, [moe(4, 60, accepted=9), moe_2b(4, 60)], {}),
        (CONTRADICTED, [MOE, moe_2b(4, 60, accepted=9)], {}),
        (NOT_TESTABLE, [MOE], {}),
        # Two of three are most.
        (SUPPORTED, [run for gamma, accepted in [(4, 5), (8, 5), (16, 100)] for run in
          (*moe(gamma, 60, accepted=accepted), *moe_2b(gamma, 60, accepted=10))], {}),
    ],
    "gain_lies_between": [
        (verdict, [MOE, dense_4b(4, *low), dense_9b(4, *high)],
         {"family": "moe", "above": "dense_4b", "below": "dense_9b", "at": at})
        for at in ("best", "each")
        for verdict, low, high in [
            (SUPPORTED, (50, 51), (70, 71)),
            (CONTRADICTED, (50, 51), (55, 56)),
            (CONTRADICTED, (66, 67), (70, 71)),
            (INCONCLUSIVE, (50, 61), (70, 71)),
        ]
    ]
    + [
        (NOT_TESTABLE, [MOE, DENSE],
         {"family": "moe", "above": "dense_4b", "below": "dense_9b", "at": "best"}),
        # One end may be open.
        (SUPPORTED, [dense_9b(4, 70, 71), dense_4b(4, 50, 51)],
         {"targets": ["dense_9b"], "above": "dense_4b", "at": "each"}),
        (NOT_TESTABLE, [dense_9b(4, 70, 71)],
         {"targets": ["dense_9b"], "above": "dense_4b", "at": "each"}),
        # At their best (γ = 8) in order, at γ = 4 not.
        *((verdict, [curve([50, 51], [60, 61]), curve([40, 41], [50, 51], target="dense_4b"),
                     curve([45, 46], [70, 71], target="dense_9b")],
           {"family": "moe", "above": "dense_4b", "below": "dense_9b", "at": at})
          for at, verdict in [("best", SUPPORTED), ("each", CONTRADICTED)]),
        # Cells with other drafts are not compared.
        (NOT_TESTABLE, [moe_2b(4, 60, 61), DENSE, dense_9b(4, 70, 71)],
         {"family": "moe", "above": "dense_4b", "below": "dense_9b", "at": "each"}),
    ],
    "gain_follows": [
        (SUPPORTED, [MOE, dense_4b(4, 50, 51)], {"column": "parameters_total"}),
        (CONTRADICTED, [MOE, dense_9b(4, 70, 71)], {"column": "parameters_total"}),
        (INCONCLUSIVE, [MOE, dense_9b(4, 61, 63)], {"column": "parameters_total"}),
        (NOT_TESTABLE, [MOE, moe_q8(4, 70, 71)], {"column": "size_bytes"}),
        # An MoE of 3 B active parameters gains more than a dense model of 4 B.
        (SUPPORTED, [MOE, dense_4b(4, 50, 51)], {"column": "parameters_active", "follows": False}),
        (CONTRADICTED, [MOE, dense_4b(4, 70, 71)],
         {"column": "parameters_active", "follows": False}),
        # One pair out of order is enough.
        (SUPPORTED, [MOE, dense_4b(4, 50, 51), dense_9b(4, 70, 71)],
         {"column": "parameters_active", "follows": False}),
    ],
    "larger_file_gains_more": [
        (SUPPORTED, [MOE, moe_q8(4, 63, 64)], {}),
        (CONTRADICTED, [MOE, moe_q8(4, 50, 51)], {}),
        (INCONCLUSIVE, [MOE, moe_q8(4, 61, 64)], {}),
        (NOT_TESTABLE, [MOE, cell("moe_q8", LARGE, 4, 63, 64)], {}),
        (NOT_TESTABLE, [MOE, dense_4b(4, 50, 51)], {}),  # another network
    ],
    **{
        predicate: [
            (verdict, [moe(4, 60, 62, prompt="passage-64"),
              moe(4, *rates, prompt="passage-128")], {})
            for verdict, rates in [(falls, (57, 58)), (rises, (65, 66)), (INCONCLUSIVE, (59, 63))]
        ]
        + [(NOT_TESTABLE, [moe(4, 60, 62, prompt="passage-64")], {})]
        for predicate, falls, rises in [
            ("falls_with_length", SUPPORTED, CONTRADICTED),
            ("falls_with_reading_the_prompt", CONTRADICTED, SUPPORTED),
        ]
    },
    "varies_at_most": [
        (verdict, [MOE, moe(4, *rates, prompt="chinese")], {"cells": "prompts", "high": 0.15})
        for verdict, rates in [
            (SUPPORTED, (57, 58)), (CONTRADICTED, (45, 50)), (INCONCLUSIVE, (53, 58)),
        ]
    ]
    + [
        (NOT_TESTABLE, [MOE], {"cells": "prompts", "high": 0.1}),
        (CONTRADICTED, [moe(4, 60, 62, prompt="passage-64"), moe(4, 40, 41, prompt="passage-128")],
         {"cells": "lengths", "high": 0.1}),
        (NOT_TESTABLE, [MOE, moe(4, 40, 41, prompt="chinese")], {"cells": "lengths", "high": 0.1}),
        # The length that differs is left out.
        (SUPPORTED, [moe(4, 80, 82, prompt="passage-64"), moe(4, 60, 61, prompt="passage-128"),
          moe(4, 60, 61, prompt="passage-1024")],
         {"cells": "lengths", "high": 0.1, "from_length": 100}),
    ],
    "gains_without_accepted_tokens": [
        # 1.1 tokens a round.
        (SUPPORTED, [moe(4, 60, 62, accepted=1)], {}),
        (CONTRADICTED, [MOE], {}),  # 3 tokens a round
        (INCONCLUSIVE, [moe(4, 54, 56, accepted=1)], {}),
        (NOT_TESTABLE, [DENSE], {"family": "moe"}),
    ],
    "rounds_cost_less_than_their_positions": [
        (SUPPORTED, [MOE], {}),  # 3 / 1.22 = 2.5 of 5
        # 3 / 0.5 = 6, and drafting may be the cause.
        (INCONCLUSIVE, [moe(4, 20, 25)], {}),
        (INCONCLUSIVE, [moe(4, 25, 40)], {}),
        (NOT_TESTABLE, [DENSE], {"family": "moe"}),
        # 2.5 passes are less than 5, and more than 1.
        (INCONCLUSIVE, [MOE], {"passes": 1}),
    ],
    "lies_above_the_dense_line": [
        # At 3 B the line through 1.22 at 4 B and 1.02 at 9 B has 1.26; through 0.9 and 1.02, 0.88.
        (verdict, [moe(8, 60, 62), dense_4b(8, *rates), dense_9b(8, 50.9, 51.1)], {})
        for verdict, rates in [
            (SUPPORTED, (44.9, 45.1)), (CONTRADICTED, (67, 67.2)), (INCONCLUSIVE, (58, 60)),
        ]
    ]
    + [(NOT_TESTABLE, [MOE, DENSE], {})],  # one point is no line
    "is_accepted_less_than_dense": [
        (SUPPORTED, [moe(4, 60, accepted=9), DENSE], {}),
        (CONTRADICTED, [MOE, DENSE], {}),  # the same is not less
        (NOT_TESTABLE, [MOE, cell("dense_4b", LARGE, 4, 60, 62)], {}),  # another draft
    ],
    "longer_rounds_cost": [
        # 3 / 1.2 = 2.5 passes at γ = 4; at γ = 8 5 tokens a round in 5 / 1.2 = 4.17: 1.67 times.
        (verdict, [MOE, moe(8, 60, 62)], {"gammas": [4, 8], "low": low, "high": high})
        for verdict, low, high in [
            # Drafting may be the cause of a ratio, but not of one that is too low.
            (INCONCLUSIVE, 1.5, 1.8), (CONTRADICTED, 1.9, 2.1), (INCONCLUSIVE, 1.2, 1.4),
        ]
    ]
    + [(NOT_TESTABLE, [MOE], {"gammas": [4, 8], "low": 1.4, "high": 1.6})],
    "tokens_take": [
        # 16 tokens at 160 tok/s take 100 ms.
        (SUPPORTED, [alone("draft_2b", 159, 161)], {"tokens": 16, "low": 99, "high": 101}),
        (CONTRADICTED, [alone("draft_2b", 159, 161)], {"tokens": 16, "high": 2, "digits": 0}),
        (INCONCLUSIVE, [alone("draft_2b", 150, 170)], {"tokens": 16, "low": 99, "high": 101}),
        (NOT_TESTABLE, [MOE], {"tokens": 16, "targets": ["draft_2b"]}),
    ],
    "runs_times_as_fast": [
        (verdict, [alone("draft_0.8b", 100, 101), alone("draft_2b", *rates)],
         {"targets": ["draft_0.8b"], "than": "draft_2b", "low": 2.5, "high": 2.5, "digits": 1})
        for verdict, rates in [
            (SUPPORTED, (40.1, 40.3)), (CONTRADICTED, (80, 81)), (INCONCLUSIVE, (40, 42)),
        ]
    ]
    + [(NOT_TESTABLE, [alone("draft_0.8b", 100, 101)], {"than": "draft_2b"})],
    "rounds_are_tokens_over_gamma": [
        # Three more tokens in each of 25 rounds: 25 are 100 / 4.
        (SUPPORTED, [[run | {"rounds": 25} for run in moe(4, 60, accepted=75)]],
         {"tolerance": 0.1}),
        (CONTRADICTED, [moe(4, 60, accepted=1)], {"tolerance": 0.1}),
        (NOT_TESTABLE, [DENSE], {"family": "moe", "tolerance": 0.1}),
    ],
    "falls_short_of_its_active_parameters": [
        # 3 B active: 12 ms between the 10 ms of the 2B and the 14 ms of the 4B are 83 tok/s.
        (verdict, [alone("draft_2b", 100, 101), alone("dense_4b", 71, 72), alone("moe_q4", *rates)],
         {"family": "moe", "low": 1.5, "high": 2.5})
        for verdict, rates in [
            (SUPPORTED, (40, 42)), (CONTRADICTED, (70, 72)), (INCONCLUSIVE, (50, 60)),
        ]
    ]
    + [(CONTRADICTED,
        [alone("draft_2b", 100, 101), alone("dense_4b", 71, 72), alone("moe_q4", 40, 42)],
        {"family": "moe", "of": "rate", "low": 100})]
    + [(NOT_TESTABLE, [alone("moe_q4", 50, 51), alone("dense_4b", 60, 61)],
        {"family": "moe", "low": 1.5})],
    "slower_than_next_active": [
        (SUPPORTED, [alone("moe_q4", 50, 51), alone("dense_4b", 60, 61)], {"family": "moe"}),
        (CONTRADICTED, [alone("moe_q4", 50, 51), alone("dense_4b", 40, 41)], {"family": "moe"}),
        (INCONCLUSIVE, [alone("moe_q4", 50, 53), alone("dense_4b", 52, 55)], {"family": "moe"}),
        (NOT_TESTABLE, [alone("moe_q4", 50, 51), alone("draft_2b", 60, 61)], {"family": "moe"}),
        # The 4B is the next above; the slower 9B does not count.
        (SUPPORTED, [alone("moe_q4", 50, 51), alone("dense_4b", 60, 61), alone("dense_9b", 20, 21)],
         {"family": "moe"}),
    ],
}  # fmt: skip

BANDWIDTH_CASES = [
    # 20.6 GB a token, 50 a second: 1030 GB/s.
    ("reads_its_file_for_each_token", CONTRADICTED, 800, {"tolerance": 0.1}),
    ("reads_its_file_for_each_token", INCONCLUSIVE, 960, {"tolerance": 0.1}),
    ("reads_its_file_for_each_token", INCONCLUSIVE, 2000, {"tolerance": 0.1}),
    ("reads_its_file_for_each_token", NOT_TESTABLE, None, {"tolerance": 0.1}),
    # 3 of 35 B parameters: 1.766 GB a token, 50 to 60 a second: 88 to 106 GB/s.
    ("bandwidth_is_used", SUPPORTED, 160, {"low": 0.5}),
    ("bandwidth_is_used", CONTRADICTED, 800, {"low": 0.5}),
    ("bandwidth_is_used", SUPPORTED, 800, {"high": 0.5}),
    ("bandwidth_is_used", INCONCLUSIVE, 200, {"low": 0.5}),
    ("bandwidth_is_used", NOT_TESTABLE, None, {"low": 0.5}),
    ("bandwidth_is_used", NOT_TESTABLE, 800, {"low": 0.5, "targets": ["dense_4b"]}),
]

AUDIT_CASES = [
    (SUPPORTED, {"losslessness_passed": 1, "losslessness_not_applicable": 1}),
    (CONTRADICTED, {"losslessness_passed": 1, "losslessness_failed": 1}),
    (INCONCLUSIVE, {"losslessness_passed": 1, "losslessness_not_judged": 1}),
    (NOT_TESTABLE, {"losslessness_not_applicable": 2}),
]


@pytest.mark.parametrize(
    ("predicate", "verdict", "groups", "parameters"),
    [(name, *case) for name, cases in PREDICATE_CASES.items() for case in cases],
)
def test_a_predicate_gives_the_verdict_of_its_intervals(predicate, verdict, groups, parameters):
    rows = [group if isinstance(group, list) else [group] for group in groups]
    assert judged(campaign(*rows), predicate, **parameters)["verdict"] == verdict


@pytest.mark.parametrize(("predicate", "verdict", "gigabytes", "parameters"), BANDWIDTH_CASES)
def test_rates_are_compared_with_the_machines_bandwidth(predicate, verdict, gigabytes, parameters):
    bandwidth = {"host_memory_bandwidth_bytes_per_second": (gigabytes or float("nan")) * 1e9}
    analysis = campaign(alone("moe_q4", 50, 60), campaign=full().campaign.assign(**bandwidth))
    assert judged(analysis, predicate, **parameters)["verdict"] == verdict


@pytest.mark.parametrize(("verdict", "counts"), AUDIT_CASES)
def test_the_audit_judges_tokens(verdict, counts):
    analysis = campaign(MOE, audit=audited(**counts))
    assert judged(analysis, "audit_passes", check="losslessness")["verdict"] == verdict
    # Runs without a draft count where a check applies to them.
    audit = audited(determinism_passed=2)
    audit.loc[0, "determinism_failed"] = 1
    row = judged(campaign(MOE, audit=audit), "audit_passes", check="determinism")
    assert row["verdict"] == CONTRADICTED
    assert row["why"] == "2 runs pass, 1 fail, it does not apply to 0"


def test_every_predicate_is_tested_with_every_verdict_it_can_give():
    given = {name: {case[0] for case in cases} for name, cases in PREDICATE_CASES.items()}
    for name, verdict, *_ in BANDWIDTH_CASES:
        given.setdefault(name, set()).add(verdict)
    given["audit_passes"] = {verdict for verdict, _ in AUDIT_CASES}
    everything = {SUPPORTED, CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE}
    cannot = {
        # Counts of tokens have no interval.
        "larger_draft_is_accepted_more": {INCONCLUSIVE},
        "is_accepted_less_than_dense": {INCONCLUSIVE},
        "rounds_are_tokens_over_gamma": {INCONCLUSIVE},
        # Of rounds; of passes that are timed by themselves there are tests below.
        "rounds_cost_less_than_their_positions": {CONTRADICTED},
        "longer_rounds_cost": {SUPPORTED},
        # A rate below the bandwidth shows nothing.
        "reads_its_file_for_each_token": {SUPPORTED},
    }
    assert given == {name: everything - cannot.get(name, set()) for name in PREDICATES}


def test_the_sentence_counts_what_holds_and_names_what_decides():
    analysis = campaign(MOE, moe_2b(4, 50, 51), moe_2b(8, 52, 53))
    row = judged(analysis, "within", of="speedup", low=1.1)
    assert row["why"] == "1 of 3 cells agree. MoE Q4, Draft 2B, γ = 4: 1.01 [1.00, 1.02]"
    row = judged(campaign(moe(4, 60)), "within", of="speedup", low=1)
    assert row["verdict"] == INCONCLUSIVE
    assert "1.20 (one block, no interval)" in row["why"]


def imposed_at(rate, *ends):
    """Return the predictions of one cell whose acceptance was imposed, by its measured speedup."""
    cells = costed().predictions
    return (
        cells[cells["target"] == "moe_q4"]
        .head(1)
        .assign(
            imposed_acceptance=rate,
            acceptance_rate=rate,
            **dict(zip(("speedup", "speedup_low", "speedup_high"), ends, strict=True)),
        )
    )


@pytest.mark.parametrize(
    ("rate", "ends", "verdict"),
    [
        (0.02, (0.2, 0.19, 0.21), CONTRADICTED),
        (0.02, (1.2, 1.1, 1.3), SUPPORTED),
        (0.3, (0.2, 0.19, 0.21), NOT_TESTABLE),  # more than next to nothing
    ],
)
def test_where_next_to_nothing_was_accepted_by_force_the_speedup_decides(rate, ends, verdict):
    analysis = replace(campaign(DENSE), predictions=imposed_at(rate, *ends))
    row = judged(analysis, "gains_without_accepted_tokens", family="moe", at_most=0.04)
    assert row["verdict"] == verdict
    if verdict == CONTRADICTED:
        assert row["why"].endswith("made to accept 2.0 %: 0.20 [0.19, 0.21]")


@pytest.mark.parametrize(("steps", "verdict"), [(3.0, SUPPORTED), (30.0, CONTRADICTED)])
def test_passes_timed_by_themselves_decide_what_checking_costs(steps, verdict):
    passes = costed().verification
    passes = passes[passes["target"] == "moe_q4"].assign(
        timed=True, steps=steps, steps_low=steps - 0.1, steps_high=steps + 0.1
    )
    analysis = replace(campaign(MOE), verification=passes[passes["width"] == 5])
    row = judged(analysis, "rounds_cost_less_than_their_positions")
    assert row["verdict"] == verdict
    assert f"a pass over 5 tokens takes the time of {steps:.2f}" in row["why"]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.5, 1.8, SUPPORTED), (1.2, 1.4, CONTRADICTED), (1.6, 1.7, INCONCLUSIVE)],
)
def test_passes_timed_by_themselves_decide_what_longer_rounds_cost(low, high, verdict):
    passes = costed().verification
    passes = passes[(passes["target"] == "moe_q4") & passes["width"].isin([5, 9])]
    steps = passes["width"].map({5: 3.0, 9: 5.0})
    ends = {"steps": steps, "steps_low": steps - 0.1, "steps_high": steps + 0.1}
    analysis = replace(campaign(MOE), verification=passes.assign(timed=True, **ends))
    given = {"gammas": [4, 8], "low": low, "high": high}
    assert judged(analysis, "longer_rounds_cost", **given)["verdict"] == verdict


@pytest.mark.parametrize(
    ("rows", "predicate", "parameters", "missing"),
    [
        (DENSE, "within", {"of": "speedup", "family": "moe", "gammas": [16]},
         "no runs of an MoE target with a draft at γ = 16"),
        (MOE, "changes_with_gamma", {"of": "acceptance", "rises": True},
         "no runs of any target with a draft at two γ whose acceptance rate is known"),
        (MOE, "gains_beyond_gamma", {"beyond": 16},
         "no runs of any target with a draft both at γ = 16 and beyond"),
        (MOE, "varies_at_most", {"cells": "lengths", "high": 0.1},
         "no runs of any target with a draft on prompts of exact length, two in a cell"),
        ([*MOE, *DENSE], "gain_lies_between",
         {"family": "moe", "above": "dense_4b", "below": "dense_9b", "at": "best"},
         "no runs of dense_9b with a draft"),
        (MOE, "runs_times_as_fast", {"targets": ["draft_2b"], "than": "dense_4b"},
         "no rates without a draft of both draft_2b and dense_4b"),
        (MOE, "bandwidth_is_used", {"low": 0.5}, "the machine's memory bandwidth is not known"),
        ([run | {"accepted": None} for run in MOE], "gains_without_accepted_tokens", {},
         "no runs of any target with a draft whose rounds are known"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(rows, predicate, parameters, missing):
    row = judged(campaign(rows), predicate, **parameters)
    assert (row["verdict"], row["why"]) == (NOT_TESTABLE, missing)


def test_a_verdict_counts_the_runs_it_rests_on_and_those_the_audit_marks():
    analysis = campaign(MOE, moe_2b(4, 60, 62), DENSE)
    analysis = with_marked(analysis, 1, "marked", target="moe_q4", draft=LARGE)
    analysis = with_marked(analysis, 2, "marked", target="dense_4b")
    row = judged(analysis, "within", of="speedup", family="moe", low=1)
    assert (row["verdict"], row["marked"], row["runs"]) == (SUPPORTED, 1, 4)


def test_runs_of_another_suite_or_prompt_do_not_count_as_its_support():
    analysis = campaign(MOE, moe(4, 60, 62, prompt="passage-64", suite="F"))
    assert judged(analysis, "within", of="speedup", low=1)["runs"] == 2
    assert judged(analysis, "within", of="speedup", low=1, cells="lengths")["runs"] == 2
    assert judged(analysis, "within", of="speedup", low=1, cells="all")["runs"] == 4


def test_a_rate_without_a_draft_rests_on_the_runs_of_its_own_suites():
    analysis = campaign(MOE, alone("moe_q4", 50, 51), alone("dense_4b", 60, 61))
    row = judged(analysis, "slower_than_next_active", family="moe")
    assert (row["verdict"], row["runs"]) == (SUPPORTED, 4)


def test_cells_compared_with_other_prompts_are_marked_unpaired():
    others = [run | {"baseline": None} for run in [*MOE, *moe(8, 70, 71)]]
    analysis = campaign(others, alone("moe_q4", 50, 50))
    assert judged(analysis, "within", of="speedup", low=1)["unpaired"]
    assert not judged(analysis, "within", of="acceptance", high=60)["unpaired"]
    # Along a curve the baseline is the same.
    assert not judged(analysis, "changes_with_gamma", of="speedup", rises=True)["unpaired"]
    assert not judged(campaign(MOE), "within", of="speedup", low=1)["unpaired"]


def test_suites_measured_in_different_ways_are_judged_apart(claims):
    rows = judge_claims({"it": claims["rises_with_gamma"]}, several_ways()).set_index("protocol")
    assert rows["verdict"].to_dict() == {"paired": CONTRADICTED, "published": SUPPORTED}


@pytest.mark.parametrize(
    ("share", "margins", "verdict"),
    [
        (Share.EVERY, [(1, 2), (1, 2)], SUPPORTED),
        (Share.EVERY, [(1, 2), (-1, 2)], INCONCLUSIVE),
        (Share.EVERY, [(-2, -1), (-1, 2)], CONTRADICTED),
        (Share.SOME, [(-2, -1), (1, 2)], SUPPORTED),
        (Share.SOME, [(-2, -1), (-1, 2)], INCONCLUSIVE),
        (Share.SOME, [(-2, -1), (-2, -1)], CONTRADICTED),
        (Share.MOST, [(-2, -1), (1, 2), (1, 2)], SUPPORTED),
        (Share.MOST, [(-2, -1), (1, 2), (-1, 2)], INCONCLUSIVE),
        (Share.MOST, [(-2, -1), (1, 2)], CONTRADICTED),  # half is not most
        (Share.EVERY, [(0, 0)], CONTRADICTED),  # at the bound
        (Share.EVERY, [], NOT_TESTABLE),
    ],
)
def test_a_claim_needs_its_share_of_comparisons(share, margins, verdict):
    comparisons = [
        Comparison(Estimate((low + high) / 2, low, high), "", ()) for low, high in margins
    ]
    level = Level(0.95, 1000)
    assert conclude(comparisons, "cells agree", "nothing", level, share).verdict == verdict


@pytest.mark.parametrize("share", list(Share))
def test_luck_decides_a_claim_no_oftener_than_its_level_says(share):
    rng, degrees, numbers = np.random.default_rng(1), 2, 12
    reach = student_quantile(degrees, 0.95)
    # Every number is at its bound, so the claim is neither true nor false by a margin.
    drawn = rng.standard_t(degrees, (4000, numbers))
    verdicts = [
        conclude(
            [Comparison(Estimate(t, t - reach, t + reach), "", ()) for t in row],
            "agree", "nothing", Level(0.95, degrees), share,
        ).verdict
        for row in drawn
    ]  # fmt: skip
    wrong = {SUPPORTED, CONTRADICTED}
    for verdict in wrong:
        assert np.mean([found == verdict for found in verdicts]) < 0.025 + 0.005
    # Without that, one of 12 would contradict a claim on all of them in every fourth case.
    assert 0.2 < np.mean((drawn < -reach).any(axis=1)) < 0.3


def test_support_by_impossible_rows_is_no_support():
    analysis = campaign(MOE, moe_2b(4, 60, 62))
    planted = with_marked(analysis, 1, draft=LARGE)
    claim = {"of": "speedup", "low": 1.1}
    assert judged(analysis, "within", **claim)["verdict"] == SUPPORTED
    assert judged(planted, "within", **claim)["verdict"] == IMPOSSIBLE_ROWS
    assert judged(planted, "within", draft="smallest", **claim)["verdict"] == SUPPORTED
    # What such rows contradict they contradict.
    assert judged(planted, "within", of="speedup", low=1.3)["verdict"] == CONTRADICTED
    # They may be spare.
    some = campaign(MOE, DENSE, dense_9b(4, 50, 51))
    follows = {"column": "parameters_active", "follows": False}
    for one in (some, with_marked(some, 1, target="dense_4b")):
        assert judged(one, "gain_follows", **follows)["verdict"] == SUPPORTED


def test_a_rate_of_impossible_runs_is_no_support():
    analysis = campaign(alone("moe_q4", 50, 51), alone("dense_4b", 60, 61))
    planted = with_marked(analysis, 1, target="dense_4b")
    row = judged(planted, "slower_than_next_active", family="moe")
    assert row["verdict"] == IMPOSSIBLE_ROWS


@pytest.mark.parametrize(
    ("predicate", "parameters"),
    [
        ("within", {"of": "acceptance", "high": 60}),
        ("changes_with_gamma", {"of": "acceptance", "rises": False}),
        ("larger_draft_is_accepted_more", {}),
        ("is_accepted_less_than_dense", {}),
        ("rounds_are_tokens_over_gamma", {"tolerance": 0.1}),
    ],
)
def test_acceptance_of_models_made_for_it_decides_nothing(predicate, parameters):
    rows = [MOE, moe_2b(4, 60, 62), moe(8, 60, 62), DENSE]
    given = judged(campaign(*rows), predicate, **parameters)
    assert given["verdict"] in {SUPPORTED, CONTRADICTED}
    made = campaign(*rows, models=ALL_MODELS.assign(constructed=True))
    row = judged(made, predicate, **parameters)
    assert (row["verdict"], row["why"]) == (NOT_TESTABLE, CONSTRUCTED)
    assert judged(made, "within", of="speedup", low=1)["verdict"] == SUPPORTED


def test_a_claim_about_a_machine_is_of_that_machine(claims):
    [row] = judge_claims({"it": claims["drafting_takes"]}, full()).to_dict("records")
    assert (row["verdict"], row["why"]) == (
        NOT_TESTABLE,
        "its numbers are those of an Apple M2 Ultra",
    )


def test_every_bound_of_a_claim_is_in_its_words(claims):
    words_of = {0.5: "half", 50: "half", 100: "100 tok/s"}
    for name, claim in claims.items():
        bounds = {key: claim.parameters.get(key) for key in ("low", "high", "at_most", "tolerance")}
        if claim.predicate == "reads_its_file_for_each_token":
            continue  # its tolerance is that of the probed bandwidth
        for value in bounds.values():
            # A speedup of 1 is whether it gains.
            if value is None or (value == 1 and claim.parameters["of"] == "speedup"):
                continue
            forms = {f"{value:g}", f"{value:.2f}", f"{100 * value:g} %", f"{100 * value - 100:.0f}"}
            forms.add(words_of.get(value, "nothing"))
            assert any(form in claim.words for form in forms), (name, value)


def test_every_predicate_is_used_and_every_claim_says_where_it_is_made(claims):
    assert {claim.predicate for claim in claims.values()} == set(PREDICATES)
    place = re.compile(
        r"(Abstract|Introduction|Page|Contribution \d|Conclusion( \d)?"
        r"|Sections? \d\.\d(, \d\.\d)*(, (Figure|Table) \d)?)"
    )
    for claim in claims.values():
        assert all(place.fullmatch(part) for part in claim.place.split("; ")), claim.place
        assert claim.words.endswith(".")


@pytest.mark.parametrize("make", [full, single, without_drafts])
def test_every_campaign_has_a_verdict_on_every_claim(claims, make):
    rows = verdicts_on(make)
    assert rows["claim"].tolist() == list(claims)
    assert rows["why"].str.len().gt(0).all()
    assert not rows["why"].str.contains("nan").any()


def test_without_drafts_nothing_of_drafts_is_testable():
    assert set(verdicts_on(without_drafts)["verdict"]) == {NOT_TESTABLE}


RIGHT = {"words": "It is so.", "place": "Here", "predicate": "within"}
RIGHT |= {"parameters": {"of": "speedup"}}
FAULTS = {
    "no_yaml": ("{", r"claims\.yaml: "),
    "a_list": ("- a list", r"claims\.yaml: "),
    "unknown_predicate": ({"predicate": "whithin"},
                          r"unknown predicate 'whithin'; did you mean 'within'"),
    "unknown_parameter": ({"parameters": {"of": "speedup", "lov": 1}},
                          r"it\.parameters: unknown key 'lov'; did you mean 'low'"),
    "missing_parameter": ({"parameters": {}}, r"it\.parameters\.of: Field required"),
    "unknown_key": ({"plaice": "Here"}, r"it: unknown key 'plaice'; did you mean 'place'"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_claim_is_refused_in_one_line_with_its_place(tmp_path, change, message):
    path = tmp_path / "claims.yaml"
    text = change if isinstance(change, str) else yaml.safe_dump({"it": RIGHT | change})
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_claims(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_verdicts_can_be_cited(claims):
    text = macros(replace(full(), claims=verdicts_on(full)))
    counts = dict(re.findall(r"newcommand{\\Claims(\w+)}{(\d+)}", text))
    verdicts = ["Supported", "RestsOnImpossibleRows", "Contradicted", "Inconclusive", "NotTestable"]
    assert sum(int(counts[verdict]) for verdict in verdicts) == len(claims)
    assert counts["SupportedMarked"] == "0"


# What the study's own rows say of its claims: the verdict, how many of the runs it rests on the
# audit marks, and why, where that is not support.
OF_STUDY = {
    "moe_gain": (CONTRADICTED, 144, 144),  # the 2B draft and γ = 4 gain 1.03 to 1.16
    "moe_gain_small_draft": (IMPOSSIBLE_ROWS, 48, 48),  # the reading that fits
    "moe_gain_small_draft_long": (IMPOSSIBLE_ROWS, 24, 24),
    "moe_always_gains": (IMPOSSIBLE_ROWS, 144, 144),
    "dense_9b_always_gains": (CONTRADICTED, 36, 36),  # 0.98 at γ = 4
    "dense_9b_over_4b": (CONTRADICTED, 72, 72),  # 0.98 and 1.05 at γ = 4
    "dense_4b_marginal": (IMPOSSIBLE_ROWS, 12, 12),
    "acceptance_low": (IMPOSSIBLE_ROWS, 216, 216),
    "acceptance_low_everywhere": (CONTRADICTED, 216, 234),  # 100 % in suite F
    "acceptance_lowest_at_16": (IMPOSSIBLE_ROWS, 72, 72),
    "acceptance_falls": (IMPOSSIBLE_ROWS, 216, 216),
    "accepted_less_than_dense": (CONTRADICTED, 144, 144),  # at γ = 4 the 9B accepts least
    "matched_draft_accepted": (NOT_TESTABLE, 0, 0),  # no MoE draft was measured
    "matched_draft_gains": (NOT_TESTABLE, 0, 0),
    "gain_without_acceptance_moe": (IMPOSSIBLE_ROWS, 72, 72),
    # With the 2B draft most cells gain less than the tokens a round yields.
    "gain_without_acceptance": (CONTRADICTED, 216, 216),
    "checking_is_sublinear": (IMPOSSIBLE_ROWS, 216, 216),
    "checking_is_faster_than_one": (IMPOSSIBLE_ROWS, 24, 24),
    "checking_16_or_4": (CONTRADICTED, 144, 144),  # it takes less time, 0.47 to 0.90 times
    "rounds_of_a_run": (CONTRADICTED, 24, 24),  # 247 rounds, not 16
    "rises_with_gamma": (CONTRADICTED, 216, 216),  # Dense 4B falls from 1.05 to 0.98
    "rises_with_gamma_moe": (IMPOSSIBLE_ROWS, 144, 144),
    "rises_beyond_16": (NOT_TESTABLE, 0, 0),  # no γ beyond 16 was measured
    "best_configuration": (IMPOSSIBLE_ROWS, 144, 144),
    "smaller_draft_gains_more": (IMPOSSIBLE_ROWS, 144, 144),
    "smaller_draft_leads_by": (INCONCLUSIVE, 144, 144),  # 0.145, between 0.142 and 0.147
    "smaller_draft_is_faster": (CONTRADICTED, 0, 18),  # 1.25 times
    "drafting_takes": (CONTRADICTED, 0, 9),  # 116 ms
    "larger_draft_accepted_more": (IMPOSSIBLE_ROWS, 144, 144),
    "between_at_best": (IMPOSSIBLE_ROWS, 48, 48),
    "between_at_each_gamma": (CONTRADICTED, 144, 144),  # at γ = 4, Dense 9B gains least of all
    "above_the_dense_line": (IMPOSSIBLE_ROWS, 48, 48),
    "gain_follows_total": (CONTRADICTED, 48, 48),  # Dense 9B gains more than the MoE of 35 B
    "gain_follows_bytes": (CONTRADICTED, 48, 48),  # and its file is smaller than both of the MoE's
    "gain_ignores_active": (IMPOSSIBLE_ROWS, 48, 48),
    "larger_file_gains_more": (IMPOSSIBLE_ROWS, 48, 48),
    "lengths_gain": (INCONCLUSIVE, 0, 18),  # 1.26 at 32 words, between 1.242 and 1.269
    "lengths_stable": (INCONCLUSIVE, 0, 18),  # 0.066, between 0.048 and 0.078
    "lengths_decline": (SUPPORTED, 0, 6),
    "lengths_decline_cause": (CONTRADICTED, 0, 6),  # decode rates leave the prompt out, and fall
    "lengths_settle": (SUPPORTED, 0, 9),
    "texts_stable": (IMPOSSIBLE_ROWS, 144, 144),
    "moe_slower_than_next_active": (SUPPORTED, 0, 27),
    "moe_half_of_its_active_rate": (CONTRADICTED, 0, 36),  # 1.54 times
    "dense_of_as_many_active": (CONTRADICTED, 0, 36),  # 85 tok/s
    "moe_reads_its_file": (CONTRADICTED, 0, 18),  # it would take 1139 and 1933 of 800 GB/s
    "large_pass_takes": (SUPPORTED, 0, 27),
    "moe_bandwidth_bound": (CONTRADICTED, 0, 18),  # a token's weights use 12 and 21 % of it
    "dense_9b_bandwidth_bound": (SUPPORTED, 0, 9),
    "small_dense_compute_bound": (SUPPORTED, 0, 27),
    "lossless": (NOT_TESTABLE, 0, 0),  # the study published no tokens
    "deterministic": (NOT_TESTABLE, 0, 0),
}


@needs_csv
def test_the_published_rows_have_these_verdicts_and_marks(claims, published_analysis):
    rows = judge_claims(claims, published_analysis).set_index("claim")
    found = {claim: (row["verdict"], row["marked"], row["runs"]) for claim, row in rows.iterrows()}
    assert found == OF_STUDY


@needs_csv
@pytest.mark.parametrize(
    ("claim", "numbers"),
    [
        ("moe_gain", "4 of 12 cells agree. MoE Q4, 2B, γ = 4: 1.03 [1.02, 1.03]"),
        ("rounds_of_a_run", "0 of 2 cells agree. MoE Q4, 0.8B, γ = 16: 256 tokens take 247 rounds"
         " of 14.9 ms; the claim says 16"),
        ("moe_reads_its_file", "0 of 2 targets could read so much. MoE Q8: 38.70 GB a token at"
         " 49.9 tok/s need 1 933 [1 926, 1 940] GB/s; memory delivers 800"),
    ],
)  # fmt: skip
def test_a_verdict_says_the_numbers_that_decide_it(claims, published_analysis, claim, numbers):
    [row] = judge_claims({claim: claims[claim]}, published_analysis).to_dict("records")
    assert row["why"] == numbers


@needs_csv
@pytest.mark.parametrize(
    ("claim", "plant", "verdict"),
    [
        # The verdicts of the study follow from its numbers: change one, and its verdict changes.
        ("rises_with_gamma", ("dense_4b", SMALL, 8, 1.07), IMPOSSIBLE_ROWS),
        ("between_at_best", ("dense_4b", SMALL, 16, 1.4), CONTRADICTED),
        ("dense_9b_always_gains", ("dense_9b", SMALL, 4, 1.1), IMPOSSIBLE_ROWS),
        ("gain_without_acceptance_moe", ("moe_q8", SMALL, 4, 1.0), CONTRADICTED),
    ],
)
def test_a_planted_speedup_changes_the_verdict(claims, published_analysis, claim, plant, verdict):
    target, draft, gamma, value = plant
    cells = published_analysis.cells.copy()
    is_it = (cells["target"] == target) & (cells["draft"] == draft) & (cells["gamma"] == gamma)
    planted = is_it & (cells["suite"] != "F")
    assert planted.sum() == 1
    cells.loc[planted, ["speedup", "speedup_low", "speedup_high"]] = value
    analysis = replace(published_analysis, cells=cells)
    [row] = judge_claims({claim: claims[claim]}, analysis).to_dict("records")
    assert row["verdict"] == verdict != OF_STUDY[claim][0]


def test_twins_decide_what_the_gain_follows_and_nothing_else_does():
    of_twins = {name: claim for name, claim in read_claims(CLAIMS).items() if claim.twins}
    made = with_twins()
    judged = judge_claims(of_twins, made).set_index("claim")
    assert judged["verdict"].to_dict() == {
        "gain_follows_total": CONTRADICTED,
        "gain_follows_bytes": CONTRADICTED,
        "gain_ignores_active": SUPPORTED,
        "moe_reads_its_file": NOT_TESTABLE,
    }
    assert judged["why"]["gain_follows_total"] == (
        "0 of 1 pairs of an MoE and a dense target agree. MoE Q4, Draft 0.8B, γ = 2, 4: 0.75 times"
        " the speedup of Dense 4B (the experts are equal; backend cpu)"
    )
    wide = made.twins.assign(ratio_low=0.5, ratio_high=1.5)
    undecided = judge_claims(of_twins, replace(made, twins=wide)).set_index("claim")["verdict"]
    assert (undecided.drop("moe_reads_its_file") == INCONCLUSIVE).all()
    cached = made.models.assign(in_cache=True)
    small = judge_claims(of_twins, replace(made, models=cached)).set_index("claim")["verdict"]
    assert small["gain_follows_bytes"] == NOT_TESTABLE


def test_texts_of_a_workload_are_compared_by_category():
    row = judged(with_categories(), "varies_at_most", cells="prompts", high=0.1)
    assert (row["verdict"], row["runs"]) == (CONTRADICTED, 24)
    assert re.search(r"γ = 4, code: 0\.\d+ .* more than with poems", row["why"])
