"""Which runs left their baselines where, and what the baseline's candidates say of it."""

import pytest

from specmoe.divergence import Candidate, Divergence, find_divergences, judge, judge_all
from specmoe.errors import MeasurementError


def row(run, tokens, *, baseline=None, prefix=None, target="t"):
    return {
        "run": run,
        "block": run.rpartition("/")[0],
        "target": target,
        "prompt": "p",
        "tokens": tokens,
        "baseline": baseline,
        "common_prefix": prefix,
    }


PLAIN = row("P/t/none/g0/r0/p", [5, 6, 7, 8])


def test_a_run_diverges_at_the_first_token_that_is_not_its_baselines():
    [found] = find_divergences(
        [PLAIN, row("B/p", [5, 6, 9, 8], baseline=PLAIN["run"], prefix=2)], "t"
    )
    assert (found.position, found.token, found.baseline_token) == (2, 9, 7)
    assert found.prefix == (5, 6)
    assert found.baseline_block == "P/t/none/g0/r0"


@pytest.mark.parametrize(
    "other",
    [
        row("B/p", [5, 6, 7, 8], baseline=PLAIN["run"], prefix=4),
        row("B/p", None, baseline=PLAIN["run"]),
        row("B/p", [1, 2, 3, 4]),
        row("B/p", [5, 6, 9, 8], baseline=PLAIN["run"], prefix=2, target="another"),
    ],
    ids=["the same tokens", "tokens not known", "no baseline", "another target"],
)
def test_no_other_run_is_asked_about(other):
    assert find_divergences([PLAIN, other], "t") == []


DIVERGENCE = Divergence(
    run="B/p",
    baseline="P/p",
    baseline_block="P/t/none/g0/r0",
    prompt="p",
    position=2,
    token=9,
    baseline_token=7,
    prefix=(5, 6),
)


def test_the_gap_is_how_far_the_token_taken_is_behind_the_best():
    judged = judge(DIVERGENCE, [Candidate(7, -0.5), Candidate(9, -0.75), Candidate(1, -3.0)])
    assert (judged.gap_nats, judged.gap_is_at_least) == (0.25, False)
    assert judged.baseline_gap_nats == 0


def test_a_tie_that_turns_when_the_prefix_is_read_at_once_shows_in_the_baselines_own_gap():
    judged = judge(DIVERGENCE, [Candidate(9, -0.5), Candidate(7, -0.625)])
    assert (judged.gap_nats, judged.baseline_gap_nats) == (0, 0.125)


def test_of_a_token_that_is_not_listed_the_gap_is_a_lower_bound():
    judged = judge(DIVERGENCE, [Candidate(7, -0.5), Candidate(1, -8.5)])
    assert (judged.gap_nats, judged.gap_is_at_least) == (8.0, True)


def test_the_five_best_candidates_are_kept():
    judged = judge(DIVERGENCE, [Candidate(token, -1.0 - token) for token in range(20)])
    assert [candidate.token for candidate in judged.best] == [0, 1, 2, 3, 4]


@pytest.fixture
def ask(tmp_path):
    """Judge divergences where there is no engine to ask."""

    def run(divergences):
        return judge_all(
            divergences,
            {},
            root=tmp_path,
            binary=tmp_path / "none",
            target=tmp_path / "t.gguf",
            log=tmp_path / "log",
            start_limit_s=1,
            run_limit_s=1,
            say=print,
        )

    return run


def test_without_divergences_no_server_is_started(ask):
    assert ask([])["divergences"] == []


def test_a_baseline_whose_record_is_missing_is_named(ask):
    with pytest.raises(
        MeasurementError, match="no record of block P/t/none/g0/r0, the baseline of"
    ):
        ask([DIVERGENCE])
