"""Words for the engine on the real one: names of flags, what they do, and what it refuses."""

import re
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from specmoe.config.block import Arm, Block
from specmoe.config.engines import EngineArgs
from specmoe.config.methods import Method
from specmoe.engine.job import check_words
from specmoe.errors import MeasurementError
from specmoe.hardware.machine import help_of
from specmoe.measure.divergence import judge_all
from specmoe.models.gguf import check_type
from specmoe.models.memory import read_sizes, ways_to_fit

from ..blocks import ALONE, DRAFTED, changed, compared, rows
from .test_divergence import divergences


def with_args(block: Block, *words: str) -> Block:
    """Return a block with words for the engine."""
    return changed(block, engine_args=words, level="+".join(words))


@pytest.fixture(scope="module")
def helped(engine_bin) -> list[tuple[str, ...]]:
    """What the engine's help names: all names of each flag."""
    told = help_of(engine_bin / "llama-server")
    heads = re.findall(r"^-[\w-]+(?:, *-[\w-]+)*", told, re.MULTILINE)
    return [tuple(re.split(", *", head)) for head in heads]


def refused(flag: str) -> bool:
    """Return whether a flag is one that other keys decide."""
    try:
        TypeAdapter(EngineArgs).validate_python([flag])
    except ValueError:
        return True
    return False


def test_a_flag_is_refused_by_all_of_its_names_or_by_none(helped):
    told = {names: {refused(name) for name in names} for names in helped}
    assert len(told) > 200
    assert [names for names, answers in told.items() if len(answers) > 1] == []


def test_every_flag_of_speculation_is_refused(helped):
    named = [name for names in helped for name in names if re.search(r"^--(no-)?spec-|draft", name)]
    assert len(named) > 50
    assert [name for name in named if not refused(name)] == []


def test_all_words_of_command_lines_and_names_of_types_are_known_without_asking(engine_bin):
    arms = [Arm(4, 0.5, n_match=3, p_min=0.0, method=one, draft_model="d") for one in Method]
    check_words(engine_bin / "llama-server", [compared(arms=(*arms,), gpu_layers=1)])
    told = re.findall(r"(\w+) +: ", help_of(engine_bin / "llama-quantize"))
    assert len(told) > 35
    for name in told:
        check_type(name, "")


def test_rows_say_the_words_of_arms_which_take_what_the_sizes_of_their_files_say(do, job, family):
    read, own = ("--load-mode", "none"), ("-ctk", "q8_0")
    arms = replace(ALONE, fitted=read), replace(DRAFTED, engine_args=own, fitted=read)
    block = with_args(compared(arms=arms), "--no-repack")
    made = rows(do(block))
    assert {(row["draft"], row["engine_options"], row["common_prefix"]) for row in made} == {
        ("none", "--no-repack --load-mode none", None),
        ("draft+-ctk+q8_0", "--no-repack -ctk q8_0 --load-mode none", None),
    }
    assert {(row["target"], row["level"]) for row in made} == {("target", block.level)}
    target, draft = (read_sizes(family[name], gpu=False) for name in ("target", "draft"))
    for arm, drafter in zip(arms, (None, draft), strict=True):
        [(_, need), *_] = ways_to_fit(block, arm, target, drafter)
        [peak] = {row["peak_rss_bytes"] for row in made if row["draft"] == arm.setting}
        assert peak < need
    log = job.log_of(block.baseline).read_text()
    told = re.findall(r"CPU (?:model|KV|RS) buffer size = +([\d.]+)", log)
    weights = target.others.weights + sum(layer.weights for layer in target.layers)
    kept = [block.context * sum(layer.cache for layer in target.layers)]
    kept += [sum(layer.state for layer in target.layers)]
    sizes = [size / 2**20 for size in (weights, *kept)]
    assert [*map(float, told)] == pytest.approx(sizes, abs=0.01)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-ctv q8_0 -fa off", "quantized V cache requires flash_attn to be enabled"),
        ("--frobnicate", "error: invalid argument: --frobnicate"),
    ],
)
def test_what_the_engine_refuses_is_one_line_in_its_own_words(do, words, says):
    with pytest.raises(MeasurementError) as caught:
        do(with_args(compared(), *words.split()))
    first, *_ = str(caught.value).splitlines()
    assert first.startswith("llama-server ended while loading (exit code 1): ")
    assert says in first


def test_a_divergence_is_judged_with_the_options_of_its_baseline(do, job):
    blocks = [
        replace(block, arms=(ALONE,), n_predict=8)
        for block in (compared(), with_args(compared(), "--cache-type-k", "q8_0"))
    ]
    found = [divergences(do(block))[0] for block in blocks]
    judged = judge_all(found, {block.block: block for block in blocks}, job)
    assert ["--cache-type-k" in command for command in judged["commands"]] == [False, True]
    assert [one["baseline_block"] for one in judged["divergences"]] == [
        block.block for block in blocks
    ]
    assert all(one["likeliest"] == one["baseline_token"] for one in judged["divergences"])
