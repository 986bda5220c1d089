"""Lines that a shell reads as measured."""

import math
import shlex
from pathlib import Path

import pytest

from specmoe.analysis.follow_up import (
    launch_line,
    measuring_line,
    model_file,
    with_files,
)
from specmoe.config.load import load


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
def test_layers_are_for_a_gpu_and_files_and_lengths_are_those_measured(mine, root, gpu):
    setting = {"draft_model": "whole", "method": "draft-simple", "gamma": 4, "p_min": 0.0}
    line = launch_line(load(mine, root), "own", setting | {"n_match": math.nan}, gpu=gpu)
    assert ("--gpu-layers " in line) == ("--gpu-layers-draft " in line) == gpu
    assert "--model-draft results/models/mine/whole.gguf" in line
    assert "--spec-type draft-simple" in line
    assert "--spec-draft-n-max 4 --spec-draft-n-min 0 --spec-draft-p-min 0" in line


def test_the_line_that_measures_more_names_the_files_of_this_call(mine, root):
    line = measuring_line(load(mine, root), 3, 4)
    assert line.endswith("--config 'measurement={repeats: 7}'")
    shown = with_files(line, [Path("config/my own.yaml"), Path("b.yaml")])
    assert shlex.split(shown)[4:7] == ["--configfile", "config/my own.yaml", "b.yaml"]
    assert "--configfile" not in with_files(line, [])
    assert with_files("llama-server -m a.gguf", [Path("a.yaml")]) == "llama-server -m a.gguf"
