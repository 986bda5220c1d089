"""Requests at once on a real llama-server: what a load counts and its runs have."""

import os
import re
import signal
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, pairwise

import pytest

from specmoe.config.block import PromptSource
from specmoe.engine.job import Job
from specmoe.engine.responses import ACCEPTED, DECODES, DRAFTED, ROUNDS, read_requests
from specmoe.errors import MeasurementError
from specmoe.measure.arm import LiveArm
from specmoe.models.derived import quantize
from specmoe.runs.schema import check_rows

from ..blocks import DRAFTED as WITH_DRAFT
from ..blocks import compared, measured, rows

LENGTHS = (8, 24, 40, 56, 72)
PROMPTS = tuple(PromptSource(f"passage-{length}", "passage.txt", length) for length in LENGTHS)
CLIENTS = 2
TOKENS = 32
GENERATED = "tokens_predicted_total"
# A load: a baseline, and with a draft model.
AT_ONCE = compared(
    concurrency=CLIENTS, level=str(CLIENTS), prompts=PROMPTS, warmups=1, n_predict=TOKENS
)


@pytest.fixture(scope="module")
def moe_job(engine_bin, job_in, family, module_folder) -> Job:
    """The job of measuring the family's MoE in F32."""
    # In F16, batches may take AMX, whose rounding is another than that of a single row.
    moe = module_folder / "moe.gguf"
    quantize(engine_bin, family["moe"], moe, "F32", module_folder / "quantize.log")
    return replace(job_in(module_folder), target=moe)


@pytest.fixture(scope="module")
def record(moe_job):
    return measured(AT_ONCE, moe_job)


def loads_of(record):
    """Return the runs of each load, by arm; all have the numbers of their load."""
    arms = {run["arm"] for run in record["runs"]}
    return {arm: [run for run in record["runs"] if run["arm"] == arm] for arm in arms}


def test_the_tokens_of_requests_and_fillers_add_up_to_the_servers(record, moe_job):
    for runs in loads_of(record).values():
        tokens = sum(len(run["answer"]["tokens"]) for run in runs)
        load, counted = runs[0], runs[0]["load_metrics"]
        assert tokens == len(PROMPTS) * TOKENS
        assert tokens + load["load_filled"] == counted[GENERATED]
        assert tokens <= load["load_tokens"] <= tokens + load["load_filled"]
        assert load["load_decodes"] <= counted[DECODES]
        assert load["load_tokens_per_second"] * load["load_s"] == pytest.approx(load["load_tokens"])
    speculative = moe_job.log_of(WITH_DRAFT).read_text()
    rounds = sum(
        not one.restored
        for requests in read_requests(speculative).values()
        for request in requests
        for one in request["verifications"]
    )
    warm_up = re.findall(r"draft acceptance = \S+ \( *\d+ accepted / +(\d+) generated", speculative)
    counted = loads_of(record)["draft/g4"][0]["load_metrics"]
    assert counted[ROUNDS] <= rounds
    assert counted[DRAFTED] <= sum(map(int, warm_up)) + CLIENTS * 4 * TOKENS
    assert 0 < counted[ACCEPTED] <= counted[DRAFTED]


def test_as_many_requests_are_served_from_the_first_to_the_last(record):
    for runs in loads_of(record).values():
        spans = {slot: [] for slot in range(CLIENTS)}
        for run in runs:
            start = datetime.fromisoformat(run["started_at"])
            spans[run["slot"]].append((start, start + timedelta(milliseconds=run["wall_ms"])))
        starts, ends = zip(*chain.from_iterable(spans.values()), strict=True)
        window = (max(ends) - min(starts)).total_seconds()
        assert runs[0]["load_s"] == pytest.approx(window, rel=0.2, abs=0.2)
        assert runs[0]["load_filled"] >= CLIENTS * TOKENS  # before, and at the end
        for own in spans.values():
            assert own
            assert all(end <= start for (_, end), (start, _) in pairwise(sorted(own)))


def test_rows_have_their_own_counts_and_text_and_the_counts_of_their_load(record):
    found = rows(record)
    check_rows(found)
    assert {(row["target"], row["level"], row["concurrency"]) for row in found} == {
        ("target", "2", 2)
    }
    for row in found:
        # The server's counters are of all its requests.
        assert row["decodes"] is None
        assert row["draft_ms"] is None
        assert row["load_s"] > (row["prompt_ms"] + row["decode_ms"]) / 1000
    for row in (row for row in found if row["gamma"]):
        given = 1 + row["rounds"] + row["accepted"] + row["replays"] - row["replays_rejected"]
        assert given <= row["generated"] == TOKENS
        assert sum(row["accepted_lengths"]) == row["rounds"]
        assert sum(row["accepted_per_position"]) == row["accepted"]
        counts = enumerate(row["drafted_lengths"])
        assert sum(length * count for length, count in counts) == row["drafted"]
        assert row["baseline"] == row["run"].replace("/draft/g4/", "/baseline/")
        assert row["common_prefix"] == TOKENS  # in F32, others change no text


def test_a_server_that_is_killed_in_a_load_is_a_fault_of_the_block(do, monkeypatch):
    request = LiveArm.request

    def kill(one, *args, slot=0, **more):
        if slot == 1:
            os.kill(one.server.pid, signal.SIGKILL)
        return request(one, *args, slot=slot, **more)

    monkeypatch.setattr(LiveArm, "request", kill)
    with pytest.raises(MeasurementError, match=r"llama-server (crashed|ended|does not answer)"):
        do(AT_ONCE)
