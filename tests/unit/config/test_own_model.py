"""One's own model in a line: the example's campaign with these files."""

import shlex
from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_config

from specmoe.config.load import EXAMPLE, load, merge_catalogs, options_of_call
from specmoe.errors import ConfigError

from ...conftest import ROOT

OWN = {"target": "/models/it's «mine» $(pwd) {a}.gguf", "draft": "~/d.gguf", "minutes": 5}


def loaded(**given):
    return load(merge_catalogs(ROOT, given), ROOT)


def test_words_are_the_campaign_of_the_example_with_these_files():
    example, own = yaml.safe_load((ROOT / EXAMPLE).read_text()), loaded(**OWN)
    example["model_sets"]["mine"] = {
        "target": {"kind": "path", "path": OWN["target"]},
        "draft": {"kind": "path", "path": OWN["draft"]},
    }
    example["suites"]["mine"]["drafts"] = ["draft"]
    example["measurement"]["minutes"] = 5
    assert own.campaign.name == own.campaign.models
    example["campaign"] |= {"name": own.campaign.name}
    example["model_sets"][own.campaign.models] = example["model_sets"].pop("mine")
    example["campaign"]["models"] = own.campaign.models
    assert loaded(**example).of_campaign() == own.of_campaign()
    named = load(merge_catalogs(ROOT, yaml.safe_load((ROOT / EXAMPLE).read_text())), ROOT)
    assert loaded(target="/m.gguf").measurement == named.measurement


def test_prompts_of_ones_own_are_where_snakemake_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text('{"prompt": "Why is the sky blue?", "category": "nature"}\n')
    own = loaded(target="t.gguf", prompts="mine.jsonl")
    [suite] = own.selected_suites.values()
    [prompt] = own.workloads[suite.workloads[0]].prompts
    assert prompt.category == "nature"


def test_other_files_are_another_campaign_and_other_minutes_the_same():
    names = [
        loaded(**{"target": "/a/m.gguf"} | more).campaign.name
        for more in ({}, {"target": "/b/m.gguf"}, {"draft": "/d.gguf"}, {"target": "/a/模型.gguf"})
    ]
    assert [name[:-8] for name in names] == ["m-", "m-", "m-", "model-"]
    assert len(set(names)) == 4
    assert loaded(target="/a/m.gguf", minutes=1).campaign.name == names[0]


def test_everything_else_may_be_given_beside_them():
    assert loaded(target="m.gguf", measurement={"n_predict": 9}).measurement.n_predict == 9
    # Minutes are those of any campaign.
    assert loaded(minutes=7).measurement.minutes == 7


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"target": "m.gguf", "minutes": 0}, "minutes: Input should be greater than 0 (got 0)"),
        ({"target": "m.gguf", "minutes": "ten"}, "minutes: Input should be a valid number"),
        ({"target": None}, "target: Input should be a valid string (got None)"),
        ({"target": {"/a": "b.gguf"}}, "target: Input should be a valid string (got {"),
        ({"draft": "d.gguf"}, "target: Field required"),
        ({"target": "m.gguf", "prompts": "no.jsonl"}, f"no file {Path('no.jsonl').absolute()};"),
        ({"target": "m.gguf", "campaign": {"engine": "current"}}, "campaign: `target` and the"),
        ({"targt": "m.gguf"}, "top level: unknown key 'targt'; did you mean 'target'?"),
    ],
)
def test_a_wrong_word_is_refused_in_a_line(given, line):
    with pytest.raises(ConfigError) as caught:
        loaded(**given)
    assert str(caught.value).startswith(f"config: {line}")
    assert "\n" not in str(caught.value)


def test_a_shell_and_snakemake_read_the_words_as_they_were_given():
    shown = shlex.split(options_of_call([Path("a b.yaml")], OWN | {"machine": {"gpu": "x"}}))
    assert shown[:3] == ["--configfile", "a b.yaml", "--config"]
    assert parse_config(shown[3:]) == OWN
