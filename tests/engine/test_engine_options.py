"""The engine's options on the real engine: their names, what they do, and what it refuses."""

import re
import subprocess
from dataclasses import replace
from typing import get_args

import pytest

from specmoe.config.block import Block, Side
from specmoe.config.engine_options import OPTION_NAMES, EngineOptions
from specmoe.config.methods import Method
from specmoe.config.option_words import concerns_draft
from specmoe.engine.flags import speculation_flags
from specmoe.engine.server import server_command
from specmoe.errors import MeasurementError
from specmoe.measure.divergence import find_divergences, judge_all
from specmoe.measure.live_side import cache_types

from ..blocks import ALONE, DRAFTED, changed, compared, rows

# A value of each that any machine accepts; without a GPU, weights stay where they are.
VALUES = {
    "flash-attn": "on",
    "n-cpu-moe": 1,
    "cpu-moe": True,
    "override-tensor": r"blk\.[0-3]\.ffn_.*=CPU",
    "device": "none",
    "load-mode": "none",
    "batch-size": 64,
    "ubatch-size": 32,
    "threads": 1,
    "threads-batch": 1,
    "poll": 0,
    **{f"cache-type-{of}": "q8_0" for of in ("k", "v", "k-draft", "v-draft")},
    "n-cpu-moe-draft": 1,
    "cpu-moe-draft": True,
    "override-tensor-draft": "ffn=CPU",
    "device-draft": "none",
    "threads-draft": 1,
    "threads-batch-draft": 1,
    "poll-draft": 1,
}


def with_options(block: Block, extra_args=(), **options) -> Block:
    """Return a block with options, by their names with underscores."""
    given = EngineOptions.model_validate(
        {name.replace("_", "-"): value for name, value in options.items()}
        | {"extra_args": list(extra_args)}
    )
    its = EngineOptions().overlaid(given)
    return changed(block, engine_options=its.options, extra_args=its.extra_args, options_id=its.id)


@pytest.fixture(scope="module")
def help_text(engine_bin) -> str:
    command = [engine_bin / "llama-server", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def helped(help_text) -> list[tuple[str, ...]]:
    """What the engine's help names: all names of each flag."""
    heads = re.findall(r"^-[\w-]+(?:, *-[\w-]+)*", help_text, re.MULTILINE)
    return [tuple(re.split(", *", head)) for head in heads]


def fault_of(flag: str) -> str | None:
    """Return why a flag is no extra word."""
    try:
        EngineOptions.model_validate({"extra_args": [flag]})
    except ValueError as error:
        return str(error)
    return None


def test_every_option_is_in_the_help_of_the_engine(helped):
    known = {name for names in helped for name in names}
    assert [name for name in OPTION_NAMES if f"--{name}" not in known] == []
    assert set(VALUES) == set(OPTION_NAMES)


def test_the_types_of_the_cache_are_those_of_the_help(help_text):
    [named] = set(re.findall(r"allowed values: (f32.*)$", help_text, re.MULTILINE))
    [of_field, _] = get_args(EngineOptions.model_fields["cache_type_k"].annotation)
    assert named.split(", ") == list(get_args(of_field))


def test_a_flag_is_refused_by_all_of_its_names_or_by_none(helped):
    told = {names: {fault_of(name) is not None for name in names} for names in helped}
    assert len(told) > 200
    assert [names for names, refused in told.items() if len(refused) > 1] == []


def test_what_the_workflow_sets_itself_is_no_extra_word(tmp_path):
    command = server_command(tmp_path, tmp_path, context=1, threads=1, gpu_layers=1)
    every = [Method.NGRAM_SIMPLE, Method.NGRAM_MAP_K4V, Method.NGRAM_MOD, Method.DRAFT]
    side = Side(4, 0.5, n_match=3, min_hits=1, n_min=0, p_min=0.0)
    command += speculation_flags(every, side, tmp_path, 1)
    flags = [word for word in command[1:] if word.startswith("--")]
    assert len(flags) > 20
    assert [flag for flag in flags if not fault_of(flag)] == []


def test_every_flag_of_speculation_is_refused_or_an_option(helped):
    named = [name for names in helped for name in names if re.search("spec|draft", name)]
    assert len(named) > 50
    assert [name for name in named if not fault_of(name)] == []


def test_the_engine_accepts_every_option(job, serve):
    block = with_options(compared(), **VALUES)
    with serve(block, DRAFTED) as running:
        assert running.settings().speculative
        given = set(running.command)
    alone = job.command(block, ALONE)
    for name in OPTION_NAMES:
        assert f"--{name}" in given
        assert (f"--{name}" in alone) == (not concerns_draft(name))


def test_both_sides_have_the_options_and_the_row_says_so(do):
    block = with_options(
        compared(),
        cache_type_k="q8_0",
        cache_type_v="q8_0",
        cache_type_k_draft="q5_1",
        threads_draft=1,
        extra_args=["--no-repack"],
    )
    record = do(block)
    target, drafted = (side["server"]["cache_types"] for side in record["sides"])
    assert (target, drafted) == (("q8_0",), ("f16", "q5_1", "q8_0"))
    assert all("--no-repack" in side["command"] for side in record["sides"])
    [text] = {row["engine_options"] for row in rows(record)}
    assert text == (
        "cache-type-k=q8_0 cache-type-k-draft=q5_1 cache-type-v=q8_0 threads-draft=1 -- --no-repack"
    )
    assert {row["target"] for row in rows(record)} == {block.target_setting}
    assert {row["target_model"] for row in rows(record)} == {"target"}


def test_a_block_in_the_mtp_cache_of_a_target_has_the_drafts_types(make, job, do):
    block = with_options(
        compared(methods=(Method.MTP,), draft="mtp", draft_model=None), cache_type_k="q8_0"
    )
    record = do(block, target=make("moe_f16"), draft=None)
    assert [side["server"]["cache_types"] for side in record["sides"]] == [("f16", "q8_0")] * 2
    block = with_options(block, cache_type_k_draft="q8_0", cache_type_v_draft="q8_0")
    [_, drafted] = do(block, target=make("moe_f16"), draft=None)["sides"]
    assert drafted["server"]["cache_types"] == ("f16", "q8_0")


def test_caches_of_other_types_than_the_options_fail_the_block(do):
    # The configuration refuses such words.
    block = replace(compared(), extra_args=("--cache-type-k", "q8_0"))
    says = r"types of the cache = \('f16', 'q8_0'\), side \S+ asks for \('f16',\)"
    with pytest.raises(MeasurementError, match=says):
        do(block)


@pytest.mark.parametrize(
    ("methods", "side", "types"),
    [
        ((), ALONE, ("f16", "q8_0")),
        ((Method.DRAFT,), DRAFTED, ("f16", "q4_0", "q8_0")),
        ((Method.NGRAM_MOD,), Side(4), ("f16", "q8_0")),
        ((Method.NGRAM_MOD, Method.DRAFT), DRAFTED, ("f16", "q4_0", "q8_0")),
    ],
)
def test_the_types_of_a_sides_caches_follow_from_its_options(methods, side, types):
    block = with_options(compared(methods=methods), cache_type_k="q8_0", cache_type_v_draft="q4_0")
    assert cache_types(block, side) == types


def test_experts_kept_on_the_cpu_change_nothing_where_the_cpu_computes(do, family):
    plain, kept = (
        {
            (row["gamma"], row["prompt"]): (row["tokens"], row["accepted"], row["decodes"])
            for row in rows(do(block, target=family["moe"]))
        }
        for block in (compared(), with_options(compared(), n_cpu_moe=4))
    )
    assert len(plain) == 4
    assert kept == plain


@pytest.mark.parametrize(
    ("options", "extra_args", "says"),
    [
        ({"cache_type_v": "q8_0", "flash_attn": "off"}, [],
         "quantized V cache requires flash_attn to be enabled"),
        ({"override_tensor": "ffn=NOWHERE"}, [],
         'error while handling argument "--override-tensor": unknown buffer type'),
        ({"device": "CUDA77"}, [],
         'error while handling argument "--device": invalid device: CUDA77'),
        ({}, ["--frobnicate"], "error: invalid argument: --frobnicate"),
        ({}, ["--numa", "everywhere"], 'error while handling argument "--numa"'),
        # Its value would be the next flag.
        ({}, ["--numa"], 'error while handling argument "--numa"'),
    ],
)  # fmt: skip
def test_what_the_engine_refuses_is_one_line_in_its_own_words(do, options, extra_args, says):
    with pytest.raises(MeasurementError) as caught:
        do(with_options(compared(), extra_args=extra_args, **options))
    first, *_ = str(caught.value).splitlines()
    assert first.startswith("llama-server ended while loading (exit code 1): ")
    assert says in first


def test_a_divergence_is_judged_with_the_options_of_its_baseline(do, job):
    blocks = [
        replace(block, sides=(ALONE,), n_predict=8)
        for block in (compared(), with_options(compared(), cache_type_k="q8_0"))
    ]
    found = []
    for block in blocks:
        first = rows(do(block))[0]
        tokens = [*first["tokens"][:3], (first["tokens"][3] + 100) % 256, *first["tokens"][4:]]
        other = first | {"run": f"{first['run']}/g4", "gamma": 4, "tokens": tokens}
        other |= {"baseline": first["run"], "common_prefix": 3}
        found += find_divergences([first, other], "target")
    judged = judge_all(found, {block.block: block for block in blocks}, job)
    assert ["--cache-type-k" in command for command in judged["commands"]] == [False, True]
    assert [one["baseline_block"] for one in judged["divergences"]] == [
        block.block for block in blocks
    ]
    assert all(one["best"][0]["token"] == one["baseline_token"] for one in judged["divergences"])
