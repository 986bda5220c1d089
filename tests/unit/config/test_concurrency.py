"""Requests at once: comparisons of their own, and what cannot be measured so is refused."""

import json

import pytest

from specmoe.config.block import Block
from specmoe.config.load import load
from specmoe.config.matrix import suite_blocks
from specmoe.config.option_words import concurrent_setting, parts_of_setting, without_concurrency
from specmoe.config.parse import parse
from specmoe.errors import ConfigError

from ...conftest import merge

SUITE = {
    "title": "At once",
    "targets": ["moe_q4"],
    "drafts": ["draft_0.8b"],
    "gammas": [4],
    "prompts": ["short_factual", "code", "long_reasoning", "chinese"],
    "concurrency": [1, 2, 4],
}


@pytest.fixture
def planned(study, root):
    """Load the study with a suite of requests at once; it measures that alone."""

    def of(**suite):
        return load(
            merge(study, {"suites": {"U": SUITE | suite}, "campaign": {"suites": ["U"]}}), root
        )

    return of


def test_each_number_makes_a_comparison_of_its_own_with_the_target_alone(planned):
    blocks = [block for block in suite_blocks(planned(), "U") if block.repeat == 0]
    assert [block.block for block in blocks] == [
        f"U/moe_q4+concurrency={number}/draft_0.8b/r0" for number in (1, 2, 4)
    ]
    assert [block.slots for block in blocks] == [1, 2, 4]
    assert all(block.measures_alone for block in blocks)
    assert {block.engine_options == {} for block in blocks} == {True}
    assert all(parse(Block, block.to_json()) == block for block in blocks)


def test_a_suite_without_it_has_one_request_after_the_other(planned):
    [block, *_] = suite_blocks(planned(concurrency=[]), "U")
    assert (block.concurrency, block.slots, block.options_id) == (None, 1, "")
    assert json.loads(block.to_json())["concurrency"] is None


def test_it_multiplies_with_options_of_the_engine_and_both_are_in_the_label(planned):
    config = planned(engine_options=[{}, {"n-cpu-moe": 2}], concurrency=[2])
    settings = [block.target_setting for block in suite_blocks(config, "U") if not block.repeat]
    assert settings == ["moe_q4+concurrency=2", "moe_q4+n-cpu-moe=2+concurrency=2"]
    labels = [config.target_label(setting).partition(", ")[2] for setting in settings]
    assert labels == ["2 at once", "n-cpu-moe 2, 2 at once"]
    # The setting without the number has a label too, though nothing was measured so.
    alone = [without_concurrency(setting) for setting in settings]
    assert alone == ["moe_q4", "moe_q4+n-cpu-moe=2"]
    assert config.target_label(alone[1]).endswith(", n-cpu-moe 2")


def test_an_id_names_the_number_last():
    assert concurrent_setting("", None) == ""
    assert concurrent_setting("", 4) == "concurrency=4"
    assert concurrent_setting("poll=0", 4) == "poll=0+concurrency=4"
    assert parts_of_setting("m+poll=0+concurrency=4") == ("m", "poll=0+concurrency=4")
    assert without_concurrency("m+poll=0") == "m+poll=0"


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        ({"concurrency": [2, 2]}, "suites.U.concurrency: a value is named twice"),
        ({"concurrency": [0]}, "greater than or equal to 1"),
        ({"concurrency": [65]}, "less than or equal to 64"),
        ({"concurrency": [8]}, "8 clients need as many prompts at least"),
        (
            {"protocol": "published", "drafts": ["draft_0.8b"]},
            "suites.U.concurrency: protocol published generates one text at a time",
        ),
        (
            {"methods": [{"method": "ngram-mod", "gammas": [8], "n_match": [3]}]},
            "ngram-mod keeps what it saw of one request for the others",
        ),
    ],
)
def test_what_cannot_be_measured_so_is_refused_in_one_line(planned, suite, says):
    with pytest.raises(ConfigError) as caught:
        planned(**suite)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
