"""Campaigns with model sets of one name share files, so a model has one entry in all of them."""

import json

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import ConfigError
from specmoe.plan.shared_models import changed_models, check_shared, recorded_entries

from ...conftest import merge


@pytest.fixture
def mine(study, root):
    """Return a function that loads a campaign of the set `mine`, with other models if given."""
    text = {"title": "S", "targets": ["target"], "gammas": [4], "prompts": ["code"]}
    study["suites"] = {"S": text | {"drafts": ["small"]}, "N": text | {"drafts": ["none"]}}

    def load_mine(campaign, **models):
        given = {
            "target": {"kind": "path", "path": "/a/target.gguf"},
            "big": {"kind": "hub", "repository": "a/b", "file": "b.gguf"},
            "small": {"kind": "quantize", "source": "big", "type": "Q4_0"},
        }
        study["model_sets"]["mine"] = given | models
        name = {"name": campaign, "models": "mine", "suites": ["S", "N"]}
        return load(merge(study, {"campaign": name}), root)

    return load_mine


def measured(config, results):
    """Record a campaign's configuration as the workflow does, and begin its blocks."""
    folder = results / config.campaign.name
    (folder / "blocks").mkdir(parents=True)
    file = folder / "campaign.json"
    file.write_text(config.of_campaign().model_dump_json(exclude={"host", "trust", "room"}))
    return file


def test_campaigns_of_the_same_models_share_them(mine, tmp_path):
    measured(mine("first"), tmp_path)
    check_shared(mine("second"), tmp_path)


@pytest.mark.parametrize(
    ("model", "entry", "said"),
    [
        ("target", {"kind": "path", "path": "/b/target.gguf"}, "path /a/target.gguf there, /b/ta"),
        (
            "small",
            {"kind": "quantize", "source": "big", "type": "Q8_0"},
            "type Q4_0 there, Q8_0 here",
        ),
        ("big", {"kind": "path", "path": "/b/big.gguf"}, "kind hub there, path here"),
    ],
)
def test_another_model_of_one_name_is_refused(mine, tmp_path, model, entry, said):
    measured(mine("first"), tmp_path)
    line = rf"model_sets\.mine\.{model}: campaign first \(\S*first\) has measured.*\({said}"
    with pytest.raises(ConfigError, match=line):
        check_shared(mine("second", **{model: entry}), tmp_path)


def test_a_campaign_may_change_its_own_models_and_what_is_measured_again_is_said(mine, tmp_path):
    file = measured(mine("first"), tmp_path)
    now = mine("first", big={"kind": "path", "path": "/b/big.gguf"})
    check_shared(now, tmp_path)
    changed = changed_models(now, recorded_entries(file, "mine"), list_blocks(now, gpu=False))
    assert {block.partition("/")[0] for block in changed} == {"S"}  # N drafts nothing
    assert set(changed.values()) == {"model big: kind hub before, path now"}


def test_a_label_a_digest_and_a_model_that_is_new_are_no_other_files(mine, tmp_path):
    measured(mine("first"), tmp_path)
    known = {"kind": "path", "path": "/a/target.gguf", "label": "Mine", "sha256": "0" * 64}
    more = {"kind": "path", "path": "/c.gguf"}
    check_shared(mine("second", target=known, more=more), tmp_path)


def test_a_campaign_without_blocks_of_its_own_holds_no_name(mine, tmp_path):
    file = measured(mine("first"), tmp_path)
    other = {"target": {"kind": "path", "path": "/b/target.gguf"}}
    text = file.read_text()
    file.write_text(text.replace('"source":"measured"', '"source":"cached"'))
    check_shared(mine("second", **other), tmp_path)
    file.write_text(text[:100])
    check_shared(mine("second", **other), tmp_path)
    file.write_text(text)
    (tmp_path / "first/blocks").rmdir()
    check_shared(mine("second", **other), tmp_path)


def test_an_entry_of_an_older_release_is_as_its_defaults_say(mine, tmp_path):
    file = measured(mine("first"), tmp_path)
    record = json.loads(file.read_text())
    del record["model_sets"]["mine"]["big"]["revision"]
    file.write_text(json.dumps(record))
    check_shared(mine("second"), tmp_path)
