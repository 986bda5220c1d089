"""Lines that a shell reads as measured."""

import math
import shlex
from pathlib import Path

import pytest

from specmoe.analysis.follow_up import launch_line, measuring_line, model_file, with_options
from specmoe.config.load import load, options_of_call


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
    words = ["--n-cpu-moe", "2", "--numa", "distribute"]
    line = launch_line(load(mine, root), "own", {"engine_options": shlex.join(words)}, gpu=False)
    assert shlex.split(line) == ["llama-server", "-m", "/models/my target's.gguf", *words]


@pytest.mark.parametrize("gpu", [True, False])
def test_layers_are_for_a_gpu_and_files_and_lengths_are_those_measured(mine, root, gpu):
    setting = {"draft_model": "whole", "method": "draft-simple", "gamma": 4, "p_min": 0.0}
    setting |= {"engine_options": "-ngl 3"}
    line = launch_line(load(mine, root), "own", setting | {"n_match": math.nan}, gpu=gpu)
    assert "--gpu-layers " not in line  # which the setting has by itself
    assert ("--gpu-layers-draft " in line) == ("--flash-attn on" in line) == gpu
    assert "--model-draft results/models/mine/whole.gguf" in line
    assert "--spec-type draft-simple" in line
    assert "--spec-draft-n-max 4 --spec-draft-n-min 0 --spec-draft-p-min 0" in line
    pair = {"method": "draft-simple,ngram-mod", "n_match": 24.0, "partner_gamma": 64.0}
    line = launch_line(load(mine, root), "own", setting | pair, gpu=gpu)
    assert "--spec-type draft-simple,ngram-mod --model-draft results" in line
    assert "-n-match 24 --spec-ngram-mod-n-max 64 --spec-ngram-mod-n-min 0" in line


def test_the_line_that_measures_more_is_configured_as_this_call_was(mine, root):
    line = measuring_line(load(mine, root), 3, 4)
    files = options_of_call([Path("config/my own.yaml"), Path("b.yaml")], {})
    shown = shlex.split(with_options(line, files))
    assert shown[4:] == [
        "--configfile", "config/my own.yaml", "b.yaml", "--config", "measurement={repeats: 7}"
    ]  # fmt: skip
    assert "--configfile" not in with_options(line, options_of_call([], {}))
    assert with_options("llama-server -m a.gguf", files) == "llama-server -m a.gguf"


def test_minutes_grow_with_repeats_and_replace_those_of_this_call(mine, root):
    mine["measurement"] |= {"minutes": 10, "repeats": {"least": 1, "most": 6}}
    line = measuring_line(load(mine, root), 4, 4)
    own = {"target": "/models/my target's.gguf", "minutes": 10, "draft": "d.gguf"}
    own |= {"suites": {"mine": {"workloads": ["agent"]}}}
    own |= {"measurement": {"memory": "1 GiB", "repeats": {"most": 6}}}
    shown = shlex.split(with_options(line, options_of_call([], own)))
    assert shown[4:] == [
        "--config", "target=/models/my target's.gguf", "draft=d.gguf",
        "suites={mine: {workloads: [agent]}}", "minutes=20",
        "measurement={memory: 1 GiB, repeats: {most: 8}}",
    ]  # fmt: skip
