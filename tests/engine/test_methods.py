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


def block_of(gammas=(4,), prompts=("repeated",), **given: Any) -> Block:
    """Return a block of the target alone and of all settings of a way of drafting."""
    sources = tuple(PromptSource(name, f"{name}.txt") for name in prompts)
    return replace(drafting(gammas=gammas, **given), prompts=sources, n_predict=64, warmups=2)


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


@pytest.mark.parametrize(
    "given",
    [
        {"method": "ngram-simple", "gammas": [4], "n_match": [2, 3]},
        {"method": "ngram-map-k", "gammas": [4], "n_match": [2]},
        {"method": "ngram-map-k4v", "gammas": [4], "n_match": [2]},
        {"method": "ngram-mod", "gammas": [4], "n_match": [2]},
        {"method": "ngram-cache"},
    ],
    ids=lambda given: given["method"],
)
def test_a_lookup_leaves_the_text_as_it_is_and_counts_add_up(rows_of, given):
    block = block_of(prompts=("repeated", "other"), **given)
    rows = rows_of(block)
    assert len(rows) == 2 * (len(block.sides) - 1)
    for row in rows:
        assert row["common_prefix"] == 64
        assert row["method"] == given["method"]
        assert row["draft_model"] is None
        assert row["drafted"] == sum(n * count for n, count in enumerate(row["drafted_lengths"]))
    # A text that repeats itself is found again.
    assert sum(row["drafted"] for row in rows if row["prompt"] == "repeated") > 0


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
    ("moe_f16", {"method": "eagle3", "drafts": ["eagle3"]}),
    ("moe_f16", {"method": "dflash", "drafts": ["dflash"]}),
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


def imposed(block: Block, share: float) -> Block:
    """Return the block with a share of the drafted tokens accepted unseen."""
    return replace(
        block,
        sides=tuple(
            replace(side, imposed_acceptance=share) if side.speculates else side
            for side in block.sides
        ),
    )


@pytest.mark.parametrize("given", [{"method": "mtp"}, {"method": "dflash", "drafts": ["dflash"]}])
@pytest.mark.parametrize("share", [0, 1])
def test_acceptance_is_imposed_on_heads_too(rows_of, make, given, share):
    block = replace(imposed(block_of(gammas=[4], **given), share), context=1024)
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
