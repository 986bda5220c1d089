"""Our program on a real engine: passes, experts that they visit, and texts that a draft model
reads."""

import math
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from specmoe.config.block import Outputs, TimedPasses
from specmoe.errors import MeasurementError
from specmoe.measure.model_passes import BESIDE, measure_passes, score, widest_move
from specmoe.models.info import Size

from ..blocks import alone
from ..dense_model import write_dense, write_moe
from ..recipes import SMALL, varied, write_models

# Full attention in all layers, a dense FFN in the first one alone, and a router without favourites.
MOE = varied(SMALL, attention="full", core=0, experts=32, experts_used=4, expert_ffn=256)
WIDTHS = (1, 2, 5, 17)
PASSES = TimedPasses(
    model="target",
    passes=tuple(product(Outputs, WIDTHS)),
    samples=12,
    seconds=None,
    row=3,
    text="passage.txt",
    depth=32,
    context=64,
    engine_args=(),
    threads=1,
    gpu_layers=0,
    environment={},
    reruns=None,
)


@pytest.fixture
def measured(job, model_passes):
    """Time the passes of a model; return the record, its timings by outputs and width."""

    def run(model: Path, passes: TimedPasses = PASSES):
        record = measure_passes(passes, replace(job, target=model))
        timings = {(one["outputs"], one["n_tokens"]): one for one in record["timings"]}
        return record | {"timings": timings}

    return run


def test_every_width_is_timed_with_all_outputs_and_with_the_last_and_work_beside(measured, family):
    record = measured(family["target"])
    timings = record["timings"]
    assert set(timings) == {*product(Outputs, WIDTHS)}
    assert all(one["first_ms"] > 0 and one["ms"] > 0 for one in timings.values())
    assert all(one["experts"] is None and one["layers"] is None for one in timings.values())
    assert {one["samples"] for one in timings.values()} == {PASSES.samples}
    late = replace(PASSES, passes=((Outputs.LAST, 2),), seconds=1e-6)
    of_draft = measured(family["draft"], late)
    assert set(of_draft["timings"]) == {(Outputs.LAST, 2)}
    assert of_draft["timings"][Outputs.LAST, 2]["samples"] == 2
    assert all(one[name] > 0 for one in (record, of_draft) for name in BESIDE)


def test_more_tokens_visit_more_experts_as_uniform_routing_does_in_each_layer(measured, tmp_path):
    record = measured(write_models(tmp_path, even=MOE)["even"])
    timings = record["timings"]
    seen = [timings["all", n_tokens]["experts"] for n_tokens in WIDTHS]
    assert seen[0] == MOE.experts_used
    assert all(less < more for less, more in pairwise(seen))
    assert [timings["last", n_tokens]["experts"] for n_tokens in WIDTHS] == seen
    by_formula = Size(0, 0.0, 1.0, MOE.experts, MOE.experts_used, MOE.layers).evenly_visited
    for n_tokens in WIDTHS:
        evenly = [by_formula(n_tokens)] * (MOE.layers - 1)
        assert timings["all", n_tokens]["layers"] == pytest.approx(evenly, rel=0.15)
    assert (record["saved_ms"], record["restored_ms"]) == (None, None)  # all has a cache


def test_passes_are_those_of_a_server_with_these_flags(measured, tmp_path):
    even = write_models(tmp_path, even=MOE)["even"]
    flags = "--batch-size 20 --cache-type-k q8_0 --flash-attn on --override-kv"
    words = (*flags.split(), "mimo2.expert_used_count=int:2")
    record = measured(even, replace(PASSES, engine_args=words))
    assert record["timings"]["all", 1]["experts"] == 2


def test_a_constant_router_visits_one_expert_whatever_the_tokens_of_a_pass(measured, tmp_path):
    dense = write_dense(tmp_path / "dense.gguf")
    moe = write_moe(dense, tmp_path / "moe.gguf", router="constant")
    timings = measured(moe, PASSES)["timings"]
    assert {timings["all", n_tokens]["experts"] for n_tokens in WIDTHS} == {1}


def test_why_the_program_fails_is_at_the_end_of_its_log(measured, family, tmp_path):
    missing, strange = tmp_path / "missing.gguf", tmp_path / "strange.gguf"
    strange.write_bytes(family["target"].read_bytes().replace(b"qwen35", b"qwen99"))
    for model, changes, fault in (
        (family["target"], {"depth": 100_000}, "the text has .* tokens, too few"),
        (family["target"], {"engine_args": ("--no-flag",)}, "invalid argument: --no-flag"),
        (missing, {}, "No such file or directory"),
        (strange, {}, "unknown model architecture: 'qwen99'"),
    ):
        with pytest.raises(MeasurementError, match=rf"model_passes failed .*\n(.*\n)*.*{fault}"):
            measured(model, replace(PASSES, **changes))


PROMPT = tuple(range(1, 40))


@pytest.fixture
def read_all(job, family, model_passes):
    """Read texts with the draft model, in batches of a width."""
    own = replace(job, target=family["draft"])
    return lambda *texts, n_tokens=8: score(texts, alone(), own, n_tokens)


@pytest.fixture
def generated(start, family):
    """What the draft model itself writes after the prompt, with its likeliest tokens."""
    with start(family["draft"]) as server:
        return server.complete(list(PROMPT), n_predict=24, temperature=0, seed=1, n_probs=2)


def test_a_draft_agrees_with_every_token_of_its_own_text_and_with_no_other(read_all, generated):
    [proposals] = read_all((PROMPT, tuple(generated["tokens"])))
    assert all(one["agrees"] for one in proposals)
    for one, each in zip(proposals, generated["completion_probabilities"], strict=True):
        first, second = each["top_logprobs"]
        assert one["token"] == first["id"]
        # Among ten candidates it is likelier than among all tokens.
        assert one["confidence"] > math.exp(first["logprob"]) - 0.01
        assert one["lead_nats"] == pytest.approx(first["logprob"] - second["logprob"], abs=0.01)
    likeliest = set(generated["tokens"])
    other = [token for token in range(256) if token not in likeliest][:24]
    [proposals] = read_all((PROMPT, other))
    found = [one["agrees"] for one in proposals]
    assert found == [one["token"] == token for one, token in zip(proposals, other, strict=True)]
    assert sum(found) <= 1  # another one may be the likeliest by chance


def test_texts_are_read_alike_in_any_order_and_nearly_alike_in_any_batches(read_all, generated):
    own, other = (PROMPT, tuple(generated["tokens"])), (PROMPT[:5], PROMPT)
    first, second = read_all(own, other)
    assert read_all(other, own) == [second, first]
    assert widest_move([first, second], read_all(own, other, n_tokens=1)) < 0.1
