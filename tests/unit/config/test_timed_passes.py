"""Which passes a campaign times by themselves."""

from specmoe.config.block import Protocol
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks, list_timed_passes
from specmoe.config.parse import parse
from specmoe.config.timed_passes import Outputs, TimedPasses

from ...conftest import ROOT


def listed(data):
    """Return the passes of a configuration by model."""
    config = load(data, ROOT)
    blocks = list_blocks(config, gpu=False)
    return {one.model: one for one in list_timed_passes(config, blocks)}


def test_targets_verify_and_drafts_read_again_at_the_widths_of_their_rounds(synthetic):
    passes = listed(synthetic)
    gammas = {gamma for suite in "ABCDFK" for gamma in synthetic["suites"][suite].get("gammas", [])}
    assert set(passes["draft_0.8b"].widths) == {1, 2, *(gamma + 1 for gamma in gammas)}
    assert passes["draft_0.8b"].outputs == (Outputs.LAST,)
    assert passes["dense_9b"].outputs == (Outputs.ALL,)
    # It drafts for itself in the controls.
    both = {model for model, one in passes.items() if len(one.outputs) == 2}
    assert both == set(synthetic["suites"]["K"]["targets"])


def test_models_that_never_speculate_by_the_server_are_not_timed(synthetic):
    synthetic["measurement"]["protocol"] = Protocol.PUBLISHED
    synthetic["campaign"]["suites"].remove("M")  # the study's commands know draft models alone
    assert listed(synthetic) == {}


def test_passes_reach_their_job_as_they_were_listed(synthetic):
    one = listed(synthetic)["moe_q4"]
    assert parse(TimedPasses, one.to_json()) == one
