"""Estimates of sizes, from the hub, the config, a family or a recipe, and of a campaign's time."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.block import Arm
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import Method
from specmoe.errors import ConfigError
from specmoe.models.info import Size, size_of_info
from specmoe.plan.estimate import (
    Machine,
    block_seconds,
    info_of_entry,
    pass_seconds,
    seconds_per_token,
    size_of,
)

from ...conftest import ROOT
from ...recipes import SMALL, TINY, write_models

MOE = "qwen3.5-35b-a3b-q4"
OWN = {"kind": "hub", "repository": "a/b", "file": "own.gguf"}


@pytest.fixture
def models(study):
    """The study's models, which a test may change."""
    return study["model_sets"]["study"]


@pytest.fixture
def size(study, root):
    """Return the size of a model of the study's set as the configuration is now."""
    return lambda model=MOE, **asked: size_of(model, load(study, root), {}, asked)


def test_sizes_of_the_hub_take_precedence_over_those_of_the_config(size, models):
    assert size(**{MOE: 7}).file_bytes == 7
    models[MOE]["size_bytes"] = 20_600_000_123
    assert size().file_bytes == 20_600_000_123


def test_the_size_of_a_quantized_model_is_estimated_from_its_family(study, size):
    study["campaign"]["models"] = "study_types"
    for model, expected in (
        ("qwen3.5-35b-a3b-q8", 34.66e9 * 8.5 / 8),
        ("qwen3.5-35b-a3b-bf16", 69.32e9),
    ):
        assert size(model).file_bytes == pytest.approx(expected, rel=1e-3)


def test_a_model_without_family_is_assumed_to_be_dense_and_may_have_no_size(models, size):
    models[MOE] = OWN
    assert size() is None
    models[MOE] = OWN | {"size_bytes": 2 * 10**9}
    assert size().pass_bytes(9) == 2e9


@pytest.mark.parametrize("recipe", [TINY, SMALL])
def test_the_size_of_a_synthetic_model_is_estimated_from_its_recipe(models, size, tmp_path, recipe):
    models[MOE] = {"kind": "synthetic", "recipe": recipe.model_dump()}
    written = write_models(tmp_path, model=recipe)["model"].stat().st_size
    assert size().file_bytes == pytest.approx(written, rel=0.2)


def test_the_info_of_an_entry_needs_a_family_and_has_null_where_only_the_file_has_the_value(
    study, root, size, models
):
    models[MOE]["file"] = "BF16/Qwen3.5-35B-A3B-UD-Q4_K_XL-00001-of-00002.gguf"
    models[MOE]["sha256"] = ["0" * 64, "1" * 64]
    info = info_of_entry(MOE, load(study, root))
    assert (info.size_bytes, info.type) == (20_600_000_000, "UD-Q4_K_XL")
    assert (info.experts, info.experts_used, info.layers) == (256, 8, 40)
    assert info.sha256 is info.tensor_types is info.context_length is None
    assert size_of_info(info).pass_bytes(5) == pytest.approx(size().pass_bytes(5))
    del models[MOE]["family"]
    with pytest.raises(ConfigError, match=r"model 'qwen3\.5-35b-a3b-q4'"):
        info_of_entry(MOE, load(study, root))


def test_a_cut_has_its_layers_share_of_its_source(synthetic, size):
    cut = {"kind": "truncate", "source": "random-moe-122m-q8", "layers": 7}
    synthetic["model_sets"]["synthetic"]["cut"] = cut
    half, whole = size("cut"), size("random-moe-122m-q8")
    assert (half.layers, whole.layers) == (7, 14)
    assert half.file_bytes == pytest.approx(whole.file_bytes / 2, abs=1)


def test_an_upcycled_model_has_its_sources_feed_forward_blocks_as_often_as_experts(study, size):
    study["campaign"] |= {"models": "smollm2", "suites": ["mine"]}
    study["suites"]["mine"] = study["suites"]["moe_baseline"] | {"targets": ["smollm2-moe16-q4"]}
    dense, moe = size("smollm2-135m-q4"), size("smollm2-moe16-2used-q4")
    assert (dense.file_bytes, dense.experts, dense.layers) == (98_362_432, 0, 30)
    copied = 98_362_432 * 79_626_240 / 134_515_008
    assert moe.file_bytes == pytest.approx(98_362_432 + 15 * copied, abs=1)
    assert (moe.experts, moe.experts_used, moe.layers) == (16, 2, 30)
    # One expert more than the dense model reads, for the second that a token visits.
    assert moe.pass_bytes(1) == pytest.approx(dense.pass_bytes(1) + copied)


def test_an_upcycled_model_without_a_family_has_its_largest_size_or_none(models, size):
    models |= {"own": OWN, "moe": {"kind": "upcycle", "source": "own", "experts": 8}}
    assert size("moe") is None
    found = size("moe", own=1000)
    assert (found.file_bytes, found.pass_bytes(1)) == (8000, 1000)


M2_ULTRA = Machine(800e9, gpu=True, cores=24)
DENSE = Size(10**9, 1e9, 0, 0, 0, 32)
# The study's Table 4 has its tokens a second, the source of the time per layer.
PUBLISHED = pd.read_csv(ROOT / "resources/reported/table4.csv", comment="#").set_index("target")
MODELS = {"dense_0.8b": "0.8b-bf16", "dense_2b": "2b-q8", "dense_4b": "4b-q8"}
MODELS |= {"dense_9b": "9b-bf16", "moe_q4": "35b-a3b-q4", "moe_q8": "35b-a3b-q8"}


@pytest.mark.parametrize("name", MODELS)
def test_the_baselines_of_the_study_are_estimated_within_a_quarter(size, name):
    rate = 1 / pass_seconds(size(f"qwen3.5-{MODELS[name]}"), 1, M2_ULTRA)
    assert rate == pytest.approx(PUBLISHED["tokens_per_second"][name], rel=0.25)


def test_the_cores_of_a_cpu_limit_it_before_its_memory_does():
    slow, fast = Machine(100e9, gpu=False, cores=2), Machine(100e9, gpu=False, cores=64)
    assert pass_seconds(DENSE, 1, slow) > pass_seconds(DENSE, 1, fast)


@given(st.floats(1, 64))
def test_a_wider_pass_never_takes_less_time(n_tokens):
    assert pass_seconds(DENSE, n_tokens + 1, M2_ULTRA) >= pass_seconds(DENSE, n_tokens, M2_ULTRA)


def test_a_round_gives_what_is_accepted_and_what_the_target_adds():
    drafted = pass_seconds(DENSE, 1, M2_ULTRA)
    # 0.6 of one draft token is accepted; if it is not, one more pass gives one more token.
    single, wider, replay = (pass_seconds(DENSE, n_tokens, M2_ULTRA) for n_tokens in (1, 2, 2.6))
    expected = (single + wider + 0.4 * replay) / (1 + 0.6 + 0.4)
    assert seconds_per_token(DENSE, M2_ULTRA, drafted, 1) == pytest.approx(expected)


def test_another_prompt_or_setting_costs_its_runs_and_those_of_the_baseline_beside_it(study, root):
    block = next(one for one in list_blocks(load(study, root), gpu=True) if one.speculates)
    alone, arm, *_ = (replace(arm, draft_model=None) for arm in block.arms)

    def seconds(*arms, prompts=1):
        known = [64] * prompts, {block.target: DENSE}, M2_ULTRA
        return block_seconds(replace(block, arms=(alone, *arms)), *known)

    run = seconds(prompts=2) - seconds()
    assert seconds(prompts=3) == pytest.approx(seconds() + 2 * run)
    assert run < seconds()  # no second warm-up
    two_blocks, start = 2 * seconds(arm), seconds() - run
    assert seconds(arm, replace(arm, p_min=0.5)) == pytest.approx(two_blocks - start)


def test_what_remembers_starts_for_each_run_and_is_not_warmed_up(study, root):
    block = next(one for one in list_blocks(load(study, root), gpu=True) if one.speculates)
    block = replace(block, prompts=block.prompts[:3])

    def seconds(method, warmups):
        asked = replace(block, arms=(Arm(gamma=4, method=method),), warmups=warmups)
        return block_seconds(asked, [64] * 3, {block.target: DENSE}, M2_ULTRA)

    once, thrice = (seconds(one, 0) for one in (Method.NGRAM_SIMPLE, Method.NGRAM_MOD))
    # Half a second, and 1 GB at 3 GB a second.
    assert thrice == pytest.approx(once + 2 * (0.5 + 1 / 3))
    assert seconds(Method.NGRAM_MOD, 3) == thrice
