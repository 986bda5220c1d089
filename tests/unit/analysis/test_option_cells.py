"""Settings with other options of the engine are told apart everywhere, and labelled."""

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from specmoe.analysis.build import by_setting
from specmoe.analysis.filters import files, text_cells
from specmoe.analysis.launch import launch_line
from specmoe.analysis.registry import Analysis
from specmoe.config.load import load
from specmoe.engine.flags import computing_flags

from ...conftest import merge
from ..paper_analyses import analysis_of, baseline_runs, speculative_runs, with_model
from ..rendered_tables import rows

KEPT = "moe_q4+--n-cpu-moe+2"
OPTIONS = {"target_model": "moe_q4", "engine_options": "--n-cpu-moe 2"}


@cache
def with_options() -> Analysis:
    """Return a target at 50 tok/s, and with options at 25; their drafts reach 60 and 50."""
    slow = [row | {"tokens_per_second": 25.0} for row in baseline_runs([KEPT], ["code"], 2)]
    kept = [*slow, *speculative_runs("B", KEPT, "draft_0.8b", 4, [50, 50])]
    plain = [
        *baseline_runs(["moe_q4"], ["code"], 2),
        *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [60, 60]),
    ]
    analysis = analysis_of([*plain, *(row | OPTIONS for row in kept)])
    return with_model(analysis, "moe_q4", KEPT, "MoE Q4, --n-cpu-moe 2", of_model="moe_q4")


@pytest.fixture
def config(study, root):
    words = ["--n-cpu-moe", 2, "--numa", "distribute"]
    merge(study, {"suites": {"B": {"engine_args": [[], words]}}})
    return load(study, root)


def test_no_cell_pools_runs_of_several_options_and_labels_tell_them_apart():
    cells = text_cells(with_options()).set_index("target")
    found = cells[["runs", "speedup", "baseline_tokens_per_second"]]
    assert found.loc["moe_q4"].tolist() == pytest.approx([2, 1.2, 50])
    assert found.loc[KEPT].tolist() == pytest.approx([2, 2.0, 25])
    assert cells["series"].tolist() == ["moe_q4", KEPT]
    assert cells["label"].tolist() == ["MoE Q4", "MoE Q4, --n-cpu-moe 2"]
    assert cells["family"].tolist() == ["moe", "moe"]


def test_the_table_of_models_has_a_file_once_whatever_its_options():
    listed = [(row[0], row[-1]) for row in rows("models", with_options())]
    assert [label for label, _ in listed] == ["MoE Q4", "Draft 0.8B", "Draft 2B", "Dense 4B"]
    assert listed[0][1] == "target"
    assert len(with_options().models) == len(files(with_options())) + 1


def test_a_target_that_ran_with_options_alone_is_a_target_in_the_table_of_models():
    analysis = with_options()
    cells = analysis.cells[analysis.cells["target"] == KEPT]
    listed = {row[0]: row[-1] for row in rows("models", replace(analysis, cells=cells))}
    assert listed["MoE Q4"] == "target"


def test_values_of_models_are_those_of_their_settings():
    runs = pd.DataFrame({"target": ["a", "a+x=1", "b+x=1"], "target_model": ["a", "a", "b"]})
    assert by_setting({"a": 1, "c": 3}, runs) == {"a": 1, "a+x=1": 1, "c": 3}


def test_the_advised_command_has_the_options(config):
    setting = {"draft_model": "draft_0.8b", "method": "draft-simple"}
    setting |= {"gamma": 4, "p_min": 0.0, "n_match": None}
    [_, own] = config.option_settings("B")
    target = f"moe_q4+{own.id}"
    line = launch_line(config, target, setting, gpu=False)
    assert line.startswith("llama-server -m results/models/study/moe_q4.gguf --n-cpu-moe 2 --numa")
    assert line.endswith("--spec-draft-p-min 0")
    alone = launch_line(config, target, gpu=False)
    assert "--n-cpu-moe 2 --numa distribute" in alone
    assert "draft" not in alone
    assert "--n-cpu-moe" not in launch_line(config, "moe_q4", setting, gpu=False)


def test_words_replace_the_flag_that_a_gpu_gets():
    assert computing_flags(99, ["-fa", "off"]) == ["--gpu-layers", "99", "-fa", "off"]
    assert computing_flags(99, ["--cpu-moe"])[2:] == ["--flash-attn", "on", "--cpu-moe"]
    assert computing_flags(0, ["--cpu-moe"]) == ["--cpu-moe"]
