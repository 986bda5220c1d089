"""A configuration that measures one suite."""

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import every_block
from specmoe.config.schema import Config

from ...conftest import ROOT, merge

SUITE = {
    "title": "Own",
    "targets": ["qwen3.5-35b-a3b-q4"],
    "drafts": ["qwen3.5-0.8b-q8"],
    "gammas": [4],
    "prompts": ["code"],
}


@pytest.fixture
def planned(study):
    """Load the study with an overlay and a suite of its own, which alone is measured."""

    def of(overlay=(), **suite) -> Config:
        study["suites"]["own"] = SUITE | suite
        study["measurement"]["block_prompts"] = 9
        return load(merge(study, {"campaign": {"suites": ["own"]}} | dict(overlay)), ROOT)

    return of


@pytest.fixture
def first(planned):
    """Return the blocks of the first repeat of such a suite."""
    return lambda **suite: [one for one in every_block(planned(**suite)) if one.repeat == 0]
