"""The baseline judges runs with other tokens: a planted token is no near tie."""

import re
from dataclasses import replace

import pytest

from specmoe.errors import MeasurementError
from specmoe.measure.divergence import CERTAIN, find_divergences, judge_all, read_in_batches

from ..blocks import ALONE, alone, compared, measured, rows

BASELINE = compared(alone(n_predict=16), arms=(ALONE,))
POSITION = 5


def divergences(record):
    """Return those of runs with γ = 4, each a baseline's of a record but for a planted token."""
    found = rows(record)
    for row in rows(record):
        tokens = row["tokens"]
        tokens[POSITION] = (tokens[POSITION] + 100) % 256
        linked = {"run": f"{row['run']}/g4", "baseline": row["run"], "common_prefix": POSITION}
        found.append(row | linked | {"gamma": 4})
    return [*find_divergences(found, "target")]


def test_a_planted_token_is_far_behind_the_baselines_own_and_a_prefix_is_asked_about_once(do, job):
    found = divergences(do(BASELINE))
    prefix, requests = found[0]["prefix"], []
    begun = {"gamma": 1, "position": 3, "prefix": prefix[:3], "baseline_token": prefix[3]}
    for asked in (found, [*found, found[0] | {"run": "another"}, found[0] | begun]):
        judged = judge_all(asked, {BASELINE.block: BASELINE}, job)["divergences"]
        requests.append(job.server_log.read_text().count("prompt eval time"))
        assert [one["position"] for one in judged] == [one["position"] for one in asked]
    assert requests[0] == requests[1] > 0
    for one in judged:
        assert one["likeliest"] == one["baseline_token"]
        assert one["gap_nats"] > 0.5
        assert list(one["gap_nats_by_batch"]) == [2, 4, 5][: one["gamma"]]
        assert min(one["gap_nats_by_batch"].values()) > 0.5


@pytest.fixture
def server(serve):
    """The target, without speculation."""
    with serve(BASELINE, ALONE) as running:
        yield running


def test_reading_one_by_one_equals_generating(server):
    prompt = list(range(1, 40))
    answer = server.complete(prompt, n_predict=8, temperature=0, seed=1, n_probs=5)
    generated = [
        {one["id"]: one["logprob"] for one in each["top_logprobs"]}
        for each in answer["completion_probabilities"]
    ]
    assert list(read_in_batches(server, prompt, answer["tokens"], [1] * 7, 5)) == generated


def test_tokens_are_read_in_the_given_batches_or_refused(serve, job):
    tokens = list(range(40, 51))
    with serve(BASELINE, ALONE) as server:
        assert len(list(read_in_batches(server, [1, 2, 3], tokens, [2, 4, 5], 5))) == 4
        with pytest.raises(MeasurementError, match="the server read 3 tokens at once instead of 4"):
            list(read_in_batches(server, [1, 2], [3, 4, 5], [4], 5))
    # An answer comes before its line of the log, which is whole only once the server has ended.
    read = re.findall(r"prompt eval time = .* / +(\d+) tokens", job.server_log.read_text())
    assert read == ["3", "2", "4", "5", "2", "3"]  # of the refused batch: the last two


def test_a_target_with_a_sliding_window_is_asked_too(job, make):
    sliding = replace(job, target=make("random-full-moe16-f16"))
    found = divergences(measured(BASELINE, sliding))
    judged = judge_all(found, {BASELINE.block: BASELINE}, sliding)["divergences"]
    assert [one["likeliest"] for one in judged] == [one["baseline_token"] for one in judged]


def test_a_token_within_a_character_has_its_candidates_too(server):
    """The engine leaves them out, so another token is sampled; that changes none of them."""
    broken = next(one for one in range(128, 256) if "\ufffd" in server.detokenize([one]))

    def answer(*chosen):
        bias = [[token, CERTAIN] for token in chosen]
        asked = {"n_predict": 1, "temperature": 0, "seed": 1, "n_probs": 5, "logit_bias": bias}
        return server.complete([1, 2, 3], **asked)

    assert "completion_probabilities" not in answer(broken)
    [*_, whole] = server.tokenize("a")
    steered = answer(whole)
    assert steered["tokens"] == [whole]
    free = answer()
    likeliest = [
        [(one["id"], one["logprob"]) for one in first["top_logprobs"]]
        for [first] in (steered["completion_probabilities"], free["completion_probabilities"])
    ]
    assert likeliest[0] == likeliest[1]
