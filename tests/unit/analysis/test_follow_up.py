"""Repeats planned by the deviation of blocks alone, and lines that a shell reads as measured."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.follow_up import (
    launch_line,
    measuring_line,
    model_file,
    setting_sds,
    with_files,
)
from specmoe.config.block import Arm
from specmoe.config.load import load
from specmoe.config.methods import Method
from specmoe.engine.job import server_command, speculation_flags

from .test_summaries import run


def setting(logs, *, gamma=4, target="t", suite="B", shared=False, temperature=0.0, forced=None):
    """Return a setting's runs: rows of `logs` are blocks, columns prompts.

    `shared`: all γ of a draft model are arms of one block.
    """
    comparison = f"{suite}/{target}/d" + ("" if shared else f"/g{gamma}")
    common = {"suite": suite, "target": target, "draft": "d", "gamma": gamma}
    common |= {"temperature": temperature, "forced_acceptance": forced}
    rows = pd.DataFrame(
        [
            run(f"{comparison}/{gamma}/r{repeat}/p{prompt}", 50.0, prompt=f"p{prompt}", **common)
            | {"block": f"{comparison}/r{repeat}", "speedup": np.exp(value)}
            for repeat, block in enumerate(logs)
            for prompt, value in enumerate(block)
        ]
    )
    warm = f"{temperature:g}" if suite == "T" else None
    return rows.assign(condition=warm if forced is None else f"{forced:g}")


def sds(*settings):
    return setting_sds(pd.concat(settings)).set_index("gamma")


def test_the_deviation_of_blocks_is_as_by_hand():
    # Blocks differ by 0.2, prompts by 0.4, and nothing else.
    row = sds(setting([[0.0, 0.4], [0.2, 0.6]])).loc[4]
    assert row["block_sd"] == pytest.approx(0.2 / np.sqrt(2))


def test_one_block_has_no_deviation():
    assert np.isnan(sds(setting([[0.0, 0.1]])).loc[4, "block_sd"])


def test_a_setting_whose_blocks_agree_by_luck_is_planned_by_its_neighbours():
    lucky, usual = [[0.0]] * 3, [[0.0], [0.1], [0.2]]
    rows = sds(setting(lucky), setting(usual, gamma=8), setting(lucky, gamma=16, target="other"))
    assert rows.loc[4, "block_sd"] == 0
    assert rows.loc[4, "planning_sd"] == pytest.approx(0.1 / np.sqrt(2))
    assert rows.loc[8, "planning_sd"] == pytest.approx(0.1)
    assert rows.loc[16, "planning_sd"] == 0  # another target spreads otherwise


def test_arms_of_a_block_forced_acceptance_and_temperatures_are_settings_of_their_own():
    logs = [[0.0], [0.1]]
    settings = [setting(logs, gamma=gamma, shared=True) for gamma in (2, 8)]
    settings += [setting(logs, forced=0.0), setting(logs, forced=0.5)]
    settings += [setting(logs, suite="T", temperature=warm) for warm in (0.0, 0.7)]
    there = setting_sds(pd.concat(settings))
    ids = ["B/t/d/g2", "B/t/d/g8", "B/t/d/g4/0", "B/t/d/g4/0.5", "T/t/d/g4/0", "T/t/d/g4/0.7"]
    assert sorted(there["setting"]) == sorted(ids)
    assert set(there["blocks"]) == {2}


@pytest.fixture
def mine(study):
    """A configuration with models of every place that a file can come from."""
    study["campaign"] |= {"models": "mine", "suites": ["one"]}
    study["model_sets"]["mine"] = {
        "own": {"kind": "path", "path": "/models/my target's.gguf"},
        "split": {"kind": "hub", "repository": "a/b", "file": "x-00001-of-00002.gguf"},
        "whole": {"kind": "hub", "repository": "a/b", "file": "dir/y.gguf"},
    }
    speculative = {"title": "t", "targets": ["own"], "drafts": ["whole"], "gammas": [4]}
    study["suites"]["one"] = speculative | {"prompts": ["code"]}
    return study


def test_files_are_named_where_they_are(mine, root):
    config = load(mine, root)
    assert [model_file(config, model) for model in ("own", "split", "whole")] == [
        "/models/my target's.gguf", "x-00001-of-00002.gguf", "results/models/mine/whole.gguf"
    ]  # fmt: skip


def test_a_shell_reads_the_names_as_they_are(mine, root):
    mine["measurement"]["engine_args"] = words = ["--n-cpu-moe", "2", "--numa", "distribute"]
    line = launch_line(load(mine, root), "own", gpu=False)
    assert shlex.split(line) == ["llama-server", "-m", "/models/my target's.gguf", *words]


@pytest.mark.parametrize("gpu", [True, False])
def test_the_flags_are_those_that_were_measured(mine, root, gpu):
    config = load(mine, root)
    arm = {"gamma": 4, "p_min": 0.0}
    setting = {"draft_model": "whole", "method": "draft-simple", "n_match": np.nan} | arm
    words = shlex.split(launch_line(config, "own", setting, gpu=gpu))
    layers = config.measurement.gpu_layers if gpu else 0
    measured = server_command(
        Path("llama-server"),
        Path("t"),
        context=1,
        threads=1,
        gpu_layers=layers,
        speculation=speculation_flags(Arm(**arm, method=Method.DRAFT), Path("d"), layers),
    )
    names = {"-m"}
    flags = [word for word in words if word.startswith("-") and word not in names]
    assert set(flags) <= set(measured)
    assert ("--gpu-layers" in flags) == ("--gpu-layers-draft" in flags) == gpu
    assert words[words.index("--spec-draft-n-max") + 1] == "4"
    assert words[words.index("--spec-type") + 1] == "draft-simple"


def test_the_line_that_measures_more_names_the_files_of_this_call():
    line = measuring_line(["B/moe_q4/draft/4"], 7)
    shown = with_files(line, [Path("config/my own.yaml"), Path("b.yaml")])
    assert shlex.split(shown)[4:7] == ["--configfile", "config/my own.yaml", "b.yaml"]
    assert "--configfile" not in with_files(line, [])
    assert with_files("llama-server -m a.gguf", [Path("a.yaml")]) == "llama-server -m a.gguf"
