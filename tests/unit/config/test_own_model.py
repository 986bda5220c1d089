"""One's own model in a line: the example's campaign with these files."""

from pathlib import Path

import pytest
from snakemake.cli import parse_config

from specmoe.config.load import EXAMPLE, load, merge_catalogs
from specmoe.errors import ConfigError
from specmoe.yaml_files import read_mapping

from ...conftest import ROOT


def loaded(**given):
    return load(merge_catalogs(ROOT, given), ROOT).of_campaign()


def test_words_are_the_campaign_of_the_example_with_these_files():
    target, draft = "/models/it's «mine» $(pwd) {a}.gguf", "~/d.gguf"
    own = loaded(**parse_config([f"target={target}", f"draft={draft}", "minutes=5"]))
    example, name = read_mapping(ROOT / EXAMPLE), own.campaign.name
    example["campaign"] |= {"name": name, "models": name}
    files = {"target": target, "draft": draft}
    example["model_sets"] = {
        name: {model: {"kind": "path", "path": path} for model, path in files.items()}
    }
    example["suites"]["mine"]["drafts"] = ["draft"]
    minutes = example["measurement"].pop("minutes")
    assert own == loaded(**example | {"minutes": 5})
    assert loaded(target=target).measurement.minutes == minutes
    beside = loaded(target=target, measurement={"n_predict": 9})
    assert beside.measurement.n_predict == 9
    # More minutes than a file says are given where it is named.
    demo = loaded(**read_mapping(ROOT / "config/demo.yaml"), minutes=30)
    assert demo.measurement.minutes == 30
    assert len(demo.paired_targets) == 6 and not own.paired_targets  # all of the demo


def test_prompts_of_ones_own_are_where_snakemake_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text('{"prompt": "Why is the sky blue?", "category": "nature"}\n')
    [sent] = loaded(target="t.gguf", prompts="mine.jsonl").workloads.values()
    assert [prompt.category for prompt in sent.prompts] == ["nature"]


def test_other_files_are_another_campaign_and_other_minutes_the_same():
    others = ({}, {"target": "/b/m.gguf"}, {"draft": "/d.gguf"}, {"target": "/a/模型.gguf"})
    names = [loaded(**{"target": "/a/m.gguf"} | other).campaign.name for other in others]
    assert [name[:-8] for name in names] == ["m-", "m-", "m-", "model-"]
    assert len(set(names)) == 4
    assert loaded(target="/a/m.gguf", minutes=1).campaign.name == names[0]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["target=m.gguf", "minutes=0"], "minutes: Input should be greater than 0 (got 0)"),
        (["target=m.gguf", "minutes=ten"], "minutes: Input should be a valid number"),
        (["target="], "target: give a text, in quotes if "),
        (["target=a: b.gguf"], "target: give a text, in quotes if "),
        (["draft=d.gguf"], "target: this key is missing"),
        (["target=m.gguf", "prompts=no.jsonl"], f"no file {Path('no.jsonl').absolute()};"),
        (["target=m.gguf", "campaign={engine: current}"], "campaign: `target` and the"),
        (["targt=m.gguf"], "top level: unknown key 'targt'; did you mean 'target'?"),
    ],
)
def test_a_wrong_word_is_refused_in_a_line(words, line):
    with pytest.raises(ConfigError) as caught:
        loaded(**parse_config(words))
    assert str(caught.value).startswith(f"config: {line}")
    assert "\n" not in str(caught.value)
