"""Every way of drafting on a real llama-server: its counts, its text, and how it fails."""

from dataclasses import replace
from typing import Any

import pytest

from specmoe.audit.checks import audit_runs
from specmoe.audit.evidence import Evidence
from specmoe.audit.finding import CheckVerdict
from specmoe.config.block import Block, PromptSource
from specmoe.config.measurement import AuditSettings
from specmoe.errors import MeasurementError
from specmoe.runs.schema import check_rows, read_runs, write_runs

from ..blocks import drafting, measured, rows

REPEATED = "def mean(values):\n    return sum(values) / len(values)\n\n\n" * 4


def block_of(*ways: Any, prompts=("repeated",), **given: Any) -> Block:
    """Return a block of the target alone and of all settings of some ways of drafting, or one."""
    sources = tuple(PromptSource(name, f"{name}.txt") for name in prompts)
    return replace(drafting(*ways, **given), prompts=sources, n_predict=64, warmups=2)


@pytest.fixture
def rows_of(job, tmp_path):
    """Measure a block and return its rows, which pass the schema and the audit."""
    for name, text in (("repeated", REPEATED), ("other", "The cause of the storm is")):
        (tmp_path / f"{name}.txt").write_text(text)

    def run(block: Block, **other_models: Any) -> list[dict[str, Any]]:
        own = replace(job, root=tmp_path, **other_models)
        found = rows(measured(block, own))
        check_rows(found)
        write_runs(found, tmp_path / "runs.parquet")
        read = read_runs(tmp_path / "runs.parquet")
        evidence = Evidence(read, {}, None, AuditSettings())
        audit = audit_runs(evidence)
        failed = audit[(audit["verdict"] == CheckVerdict.FAIL) & (audit["level"] == "impossible")]
        assert failed["why"].tolist() == []
        return [row for row in found if row["gamma"]]

    return run


LOOKUPS = [
    {"method": "ngram-simple", "gammas": [4], "n_match": [2, 3]},
    *({"method": f"ngram-{way}", "gammas": [4], "n_match": [2]} for way in ("map-k", "map-k4v")),
    {"method": "ngram-mod", "gammas": [4], "n_match": [2]},
    {"method": "ngram-cache"},
]


def test_lookups_leave_the_text_as_it_is_and_counts_add_up(rows_of):
    block = block_of(*LOOKUPS, prompts=("repeated", "other"))
    rows = rows_of(block)
    assert len(rows) == 2 * (len(block.sides) - 1) == 12
    for row in rows:
        assert row["common_prefix"] == 64
        assert row["draft_model"] is None
        assert row["drafted"] == sum(n * count for n, count in enumerate(row["drafted_lengths"]))
    # A text that repeats itself is found again.
    repeated = [row for row in rows if row["prompt"] == "repeated"]
    for given in LOOKUPS:
        assert sum(row["drafted"] for row in repeated if row["method"] == given["method"]) > 0


def test_what_a_method_that_remembers_drafts_is_the_same_in_every_pass(rows_of):
    way = {"method": "ngram-mod", "gammas": [4], "n_match": [2]}
    rows = rows_of(replace(block_of(prompts=("repeated", "other"), **way), passes=2))
    for prompt in ("repeated", "other"):
        first, second = (row for row in rows if row["prompt"] == prompt)
        assert first["drafted_lengths"] == second["drafted_lengths"]


def test_a_smaller_p_min_drafts_more(rows_of):
    rows = rows_of(block_of(method="draft", drafts=["draft"], gammas=[4], p_min=[0, 0.3, 0.9]))
    drafted = {row["p_min"]: row["drafted"] / row["rounds"] for row in rows if row["rounds"]}
    assert drafted[0] > drafted[0.3]
    assert {row["draft"] for row in rows} == {"draft", "draft-p0.3", "draft-p0.9"}


HEADS = [
    ("moe_f16", {"method": "mtp"}),
    ("full_f16", {"method": "dspark", "drafts": ["full_dspark"]}),
]


@pytest.mark.parametrize(("target", "given"), HEADS)
def test_a_head_is_accepted_in_part_and_needs_no_replay(rows_of, make, target, given):
    block = replace(block_of(prompts=("repeated", "other"), gammas=[4], **given), context=1024)
    files = {model: make(model) for model in block.draft_models}
    rows = rows_of(block, target=make(target), drafts=files)
    for row in rows:
        assert row["common_prefix"] == 64
        assert row["replays"] == 0
        assert row["rounds"] == sum(row["accepted_lengths"]) == sum(row["drafted_lengths"])
    assert 0 < sum(row["accepted"] for row in rows) < sum(row["drafted"] for row in rows)


@pytest.mark.parametrize(
    ("given", "share"), [({"method": "mtp"}, 0), ({"method": "dflash", "drafts": ["dflash"]}, 1)]
)
def test_acceptance_is_imposed_on_heads_too(rows_of, make, given, share):
    block = replace(block_of(gammas=[4], **given), context=1024)
    alone, head = block.sides
    block = replace(block, sides=(alone, replace(head, imposed_acceptance=share)))
    files = {model: make(model) for model in block.draft_models}
    [row] = rows_of(block, target=make("moe_f16"), drafts=files)
    assert row["accepted"] == share * row["drafted"]
    assert row["replays"] == 0


def test_a_head_that_does_not_fit_is_said_to_in_one_line(rows_of, make):
    block = replace(block_of(gammas=[4], method="eagle3", drafts=["dflash"]), context=1024)
    with pytest.raises(MeasurementError) as failed:
        rows_of(block, target=make("moe_f16"), drafts={"dflash": make("dflash")})
    line = "eagle3@dflash cannot draft for target with γ 4: failed to initialize speculative"
    assert line in str(failed.value)
