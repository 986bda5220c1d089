"""The estimate of a campaign's time follows from the bytes it reads."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.models.expected_sizes import size_of
from specmoe.models.info import Size
from specmoe.plan.estimate import Machine, block_seconds, pass_seconds, seconds_per_token

M2_ULTRA = Machine(800e9, gpu=True, cores=24)
DENSE = Size(10**9, 1e9, 0, 0, 0, 32, "")
MODELS = [
    "qwen3.5-35b-a3b-q4",
    "qwen3.5-35b-a3b-q8",
    "qwen3.5-4b-q8",
    "qwen3.5-9b-bf16",
    "qwen3.5-0.8b-q8",
    "qwen3.5-2b-q8",
    "target",
    "draft",
]
SIZES = dict.fromkeys(MODELS, DENSE)
# Tokens a second in the study's Table 4, the source of the time per layer.
PUBLISHED = {
    "qwen3.5-0.8b-bf16": 138.0,
    "qwen3.5-2b-q8": 110.4,
    "qwen3.5-35b-a3b-q4": 55.3,
    "qwen3.5-35b-a3b-q8": 49.9,
    "qwen3.5-4b-q8": 67.2,
    "qwen3.5-9b-bf16": 33.4,
}


@pytest.fixture
def config(study, root):
    return load(study, root)


@pytest.mark.parametrize("model", PUBLISHED)
def test_the_baselines_of_the_study_are_estimated_within_a_quarter(config, model):
    rate = 1 / pass_seconds(size_of(model, config, {}, {}), 1, M2_ULTRA)
    assert rate == pytest.approx(PUBLISHED[model], rel=0.25)


def test_the_cores_of_a_cpu_limit_it_before_its_memory_does():
    slow, fast = Machine(100e9, gpu=False, cores=2), Machine(100e9, gpu=False, cores=64)
    assert pass_seconds(DENSE, 1, slow) > pass_seconds(DENSE, 1, fast)


@given(st.floats(1, 64))
def test_a_wider_pass_never_takes_less_time(n_tokens):
    assert pass_seconds(DENSE, n_tokens + 1, M2_ULTRA) >= pass_seconds(DENSE, n_tokens, M2_ULTRA)


def test_a_higher_forced_acceptance_takes_less_time_a_token():
    drafted = pass_seconds(DENSE, 1, M2_ULTRA)
    times = [seconds_per_token(DENSE, M2_ULTRA, drafted, 8, forced) for forced in (0, 0.5, 1)]
    assert times == sorted(times, reverse=True)
    # None accepted: two tokens from eight passes of the draft model, one over nine positions and
    # one over two. All accepted: nine tokens from eight passes of the draft model and one over
    # nine positions.
    single, two, wide = (pass_seconds(DENSE, n_tokens, M2_ULTRA) for n_tokens in (1, 2, 9))
    assert times[0] == pytest.approx((8 * single + wide + two) / 2)
    assert times[-1] == pytest.approx((8 * single + wide) / 9)


def test_a_second_pass_costs_the_runs_again_and_no_warm_up(config):
    [block] = [
        b for b in list_blocks(config, gpu=True) if b.block == "moe_baseline/qwen3.5-35b-a3b-q4/r0"
    ]
    once, twice, thrice = (
        block_seconds(replace(block, prompt_iterations=n), [64], SIZES, M2_ULTRA) for n in (1, 2, 3)
    )
    assert thrice - twice == pytest.approx(twice - once)
    assert twice < 2 * once
