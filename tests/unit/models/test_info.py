"""Model infos are the same after they are written and read, and a damaged one is named."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.errors import ModelError
from specmoe.models.info import Size, load_info, load_infos, save_info
from specmoe.runs.schema import read_runs

from ...conftest import ROOT
from ...recipes import made_info


def test_infos_are_read_as_they_were_written(tmp_path):
    info = made_info(tensor_types={"Q8_0": 2}, origin="a-package 1.0, a.gguf", licence="MIT")
    save_info(info, tmp_path / "one.json")
    save_info({"one": info}, tmp_path / "models.json")
    assert load_info(tmp_path / "one.json") == info
    assert load_infos(tmp_path / "models.json") == {"one": info}
    # One without an origin does not mention it.
    save_info(replace(info, origin="", licence=""), tmp_path / "one.json")
    optional = {"origin", "licence", "thinking", "sliding_window"}
    assert asdict(info).keys() - json.loads((tmp_path / "one.json").read_text()).keys() == optional


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", r"it is no JSON \(Expecting property name enclosed in double quotes"),
        ("[]", "top level"),
        ('{"one": {"size_bytes": 1}}', "one.sha256"),
    ],
)
def test_a_damaged_info_is_named_with_the_place_of_its_fault(tmp_path, text, place):
    (tmp_path / "models.json").write_text(text)
    with pytest.raises(ModelError, match=rf"models\.json: no model info \({place}"):
        load_infos(tmp_path / "models.json")
    with pytest.raises(ModelError, match=r"absent\.json: cannot be read"):
        load_info(tmp_path / "absent.json")


@pytest.mark.parametrize("name", ["demo", "methods", "full-size"])
def test_the_targets_that_replay_are_those_of_the_shipped_rows(name):
    folder = ROOT / "resources/campaigns" / name
    infos, runs = load_infos(folder / "models.json"), read_runs(folder / "runs.parquet")
    drafted = runs[(runs["method"] == "draft-simple") & (runs["accepted"] < runs["drafted"])]
    for target, rejected in drafted.groupby("target"):
        assert (rejected["replays"].sum() > 0) == infos[target].replays


@given(st.integers(1, 64), st.integers(1, 8), st.integers(8, 256))
def test_a_wider_pass_reads_more_experts_and_at_most_all(n_tokens, used, experts):
    size = Size(10, 3.0, 7.0, experts, used, 1)
    assert size.pass_bytes(n_tokens) <= size.pass_bytes(n_tokens + 1) <= 10
    assert size.pass_bytes(1) == pytest.approx(3 + 7 * used / experts)


def test_experts_that_were_seen_replace_those_of_even_routing_by_their_share():
    routed = Size(10, 3.0, 7.0, 256, 8, 1)
    even = routed.evenly_visited
    seen = replace(routed, seen_experts=((1, 8.0), (5, even(5) * 0.9), (17, even(17) * 0.8)))
    assert seen.visited(1) == 8
    assert seen.visited(5) == pytest.approx(even(5) * 0.9)
    assert seen.visited(11) == pytest.approx(even(11) * 0.85)
    assert seen.visited(65) == pytest.approx(even(65) * 0.8)
    assert seen.pass_bytes(17) == pytest.approx(3 + 7 * even(17) * 0.8 / 256)
