"""The baseline judges runs that left its tokens: a token planted is no near tie."""

from copy import deepcopy
from dataclasses import replace

import pytest

from specmoe.block import Block, Method, PromptSource
from specmoe.collect import link_baselines, rows_of_record
from specmoe.divergence import Divergence, find_divergences, judge_all
from specmoe.paired import measure
from specmoe.server import Server, server_command

BASELINE = Block(
    block="P/target/none/g0/r0",
    suite="P",
    target="target",
    method=Method.NONE,
    draft="none",
    gamma=0,
    repeat=0,
    prompts=(PromptSource("code", "code.txt"), PromptSource("passage-32", "passage.txt", 32)),
    n_predict=16,
    temperature=0.0,
    seed=42,
    warmups=0,
    context=512,
    threads=1,
    gpu_layers=0,
)
PROVENANCE = {
    "engine": "e",
    "engine_commit": "c",
    "backend": "cpu",
    "target_sha256": "t",
    "draft_sha256": "d",
}
POSITION = 5


@pytest.fixture
def surroundings(engine_bin, family, prompt_folder, tmp_path):
    """What measuring and judging need alike."""
    return {
        "root": prompt_folder,
        "binary": engine_bin / "llama-server",
        "target": family["target"],
        "log": tmp_path / "server.log",
        "start_limit_s": 60,
        "run_limit_s": 60,
        "say": print,
    }


@pytest.fixture
def record(surroundings):
    """The record of a baseline's block."""
    return measure(BASELINE, draft=None, **surroundings) | {"provenance": PROVENANCE}


def planted(record, token_of):
    """Return a copy of a baseline's record as of a speculative block, with one token replaced."""
    copy = deepcopy(record)
    copy["block"] |= {"block": "B/target/d/g4/r0", "suite": "B", "draft": "d", "gamma": 4}
    for run in copy["runs"]:
        run["run"] = f"B/target/d/g4/r0/{run['prompt']}"
        tokens = run["answer"]["tokens"]
        tokens[POSITION] = token_of(tokens[POSITION])
    return copy


def divergences(record, token_of):
    rows = [row for of in (record, planted(record, token_of)) for row in rows_of_record(of, "c")]
    link_baselines(rows, {"B": "P"})
    return find_divergences(rows, "target")


def test_a_planted_token_is_far_behind_the_baselines_own(record, surroundings):
    found = divergences(record, lambda token: (token + 100) % 256)
    judged = judge_all(found, {BASELINE.block: BASELINE}, **surroundings)["divergences"]
    assert [one["position"] for one in judged] == [POSITION] * 2
    for one in judged:
        assert one["best"][0]["token"] == one["baseline_token"]
        assert one["baseline_gap_nats"] == 0
        assert one["gap_nats"] > 0.5
        assert not one["gap_is_at_least"]  # the vocabulary is smaller than what is asked for


def test_the_baselines_own_token_has_no_gap(record, surroundings):
    [first, *_] = divergences(record, lambda token: (token + 100) % 256)
    own = replace(first, token=first.baseline_token)
    [judged] = judge_all([own], {BASELINE.block: BASELINE}, **surroundings)["divergences"]
    assert judged["gap_nats"] == 0


def test_a_prefix_shared_by_several_runs_is_asked_about_once(record, surroundings):
    [first, *_] = divergences(record, lambda token: (token + 100) % 256)
    twice: list[Divergence] = [first, replace(first, run="another")]
    judged = judge_all(twice, {BASELINE.block: BASELINE}, **surroundings)
    assert len(judged["divergences"]) == 2
    assert surroundings["log"].read_text().count("prompt eval time") == 1


def test_candidates_come_by_their_probability_and_best_first(surroundings, family):
    command = server_command(
        surroundings["binary"], family["target"], context=512, threads=1, gpu_layers=0
    )
    with Server(command, surroundings["log"], start_limit_s=60, run_limit_s=60) as server:
        answer = server.complete([1, 2, 3], n_predict=1, temperature=0, seed=1, n_probs=5)
    [first] = answer["completion_probabilities"]
    logprobs = [candidate["logprob"] for candidate in first["top_logprobs"]]
    assert logprobs == sorted(logprobs, reverse=True)
    assert len(logprobs) == 5
    assert first["top_logprobs"][0]["id"] == answer["tokens"][0]
