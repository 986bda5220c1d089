"""Every drafting method on a real llama-server: its counts, its text, and how it fails."""

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from specmoe.audit.checks import audit_runs
from specmoe.audit.evidence import CheckVerdict, Evidence
from specmoe.config.block import Arm, Block, PromptSource
from specmoe.config.methods import Drafting
from specmoe.config.schema import AuditSettings
from specmoe.engine.responses import Verification
from specmoe.errors import MeasurementError
from specmoe.measure.model_passes import play, texts_of
from specmoe.models.synthetic import write_model
from specmoe.runs.schema import read_runs, write_runs

from ..blocks import ALONE, compared, measured, rows
from ..recipes import PAIRS, SMALL, edit_vocabulary, varied, write_models

REPEATED = "def mean(values):\n    return sum(values) / len(values)\n\n\n" * 4


def block_of(*ways: Any) -> Block:
    """Return a block of the baseline and of all settings of some drafting methods, γ = 4."""
    settings = (one for way in ways for one in Drafting(**way).settings("target", [4]))
    arms = ALONE, *(Arm(**setting) for setting in settings)
    sources = tuple(PromptSource(name, f"{name}.txt") for name in ("repeated", "other"))
    return compared(arms=arms, prompts=sources, n_predict=64, warmups=2)


@pytest.fixture
def rows_of(do, tmp_path):
    """Measure a block and return its rows, which pass the schema and the audit."""
    for name, text in (("repeated", REPEATED), ("other", "The cause of the storm is")):
        (tmp_path / f"{name}.txt").write_text(text)

    def run(block: Block, **other_models: Any) -> list[dict[str, Any]]:
        found = rows(do(block, root=tmp_path, **other_models))
        write_runs(found, tmp_path / "runs.parquet")
        read = read_runs(tmp_path / "runs.parquet")
        audit = audit_runs(Evidence(read, {}, None, AuditSettings()))
        failed = audit[(audit["verdict"] == CheckVerdict.FAIL) & (audit["level"] == "impossible")]
        assert failed["why"].tolist() == []
        return [row for row in found if row["gamma"]]

    return run


def check_pair(rows: list[dict[str, Any]], log: str) -> None:
    """Check what the rows of a process say of a pair against the totals in its log."""
    line = r"statistics +(\S+): .*#gen tokens = +(\d+), #acc tokens = +(\d+)"
    last = {kind: (int(n), int(m)) for kind, n, m in re.findall(line, log)}
    (by_model, of_model), (drafted, accepted) = map(last.get, rows[0]["method"].split(","))
    # The engine counts a token of the target's own with those that a replay accepts.
    accepted -= sum(row["replays"] - row["replays_rejected"] for row in rows)
    assert sum(row["partner_drafted"] for row in rows) == drafted
    told = [row["partner_accepted"] for row in rows]
    assert told == [None] or sum(told) == accepted  # replays may be a draft model's
    assert sum(row["drafted"] for row in rows) == drafted + by_model
    assert sum(row["accepted"] for row in rows) == accepted + of_model


LOOKUPS = [
    {"method": "ngram-simple", "n_match": [2, 3]},
    *({"method": f"ngram-{way}", "n_match": [2]} for way in ("map-k", "map-k4v", "mod")),
    {"method": "ngram-cache"},
]


def test_lookups_and_drafts_leave_the_text_as_it_is_and_counts_add_up(rows_of, tmp_path):
    draft = {"method": "draft", "drafts": ["draft"], "p_min": [0, 0.3, 0.9]}
    pair = {"method": "draft", "drafts": ["draft"], "with": "ngram-mod", "n_match": [1]}
    block = block_of(*LOOKUPS, draft, pair)
    block = replace(block, prompts=(*block.prompts, PromptSource("again", "repeated.txt")))
    rows = rows_of(block)
    assert len(rows) == 3 * (len(block.arms) - 1) == 30
    for row in rows:
        assert row["common_prefix"] == 64
        assert row["drafted"] == sum(n * count for n, count in enumerate(row["drafted_lengths"]))
    # A text that repeats itself is found again.
    repeated = [row for row in rows if row["prompt"] == "repeated"]
    for given in LOOKUPS:
        assert sum(row["drafted"] for row in repeated if row["method"] == given["method"]) > 0
    # A method that remembers begins again with every prompt.
    remembering = {row["prompt"]: row for row in rows if row["draft"] == "ngram-mod-n2"}
    first, second = remembering["repeated"], remembering["again"]
    assert first["drafted_lengths"] == second["drafted_lengths"]
    # The pool of a pair remembers too: the log is of the process of its last run.
    pairs = sorted((row for row in rows if row["partner"]), key=lambda row: row["order"])
    check_pair(pairs[-1:], (tmp_path / "server.draft-with-ngram-mod.g4-n1-m8.log").read_text())
    assert 0 < sum(row["partner_drafted"] for row in pairs) < sum(row["drafted"] for row in pairs)


@pytest.mark.parametrize("replays", [True, False])
def test_n_grams_are_played_in_the_rounds_that_the_server_logs(
    job, make, model_passes, tmp_path, replays
):
    maps = ("simple", "map-k", "map-k4v", "mod")
    ways = [{"method": f"ngram-{way}", "n_match": [2, 3], "gammas": [8]} for way in maps]
    block = block_of(*ways, *LOOKUPS[-1:], {"method": "ngram-cache", "drafts": ["table"]})
    code = PromptSource("code", "code.txt")
    block = replace(block, prompts=(*block.prompts, code), warmups=1, reruns=None)
    for name, text in (("repeated", REPEATED), ("other", "The cause of"), ("code", REPEATED[:40])):
        (tmp_path / f"{name}.txt").write_text(text)
    target, full = make("random-hybrid-moe16-f16"), varied(SMALL, attention="full")
    if not replays:
        target = write_models(tmp_path, full=full)["full"]
    drafts = {"table": make("random-hybrid-ngrams")}
    own = replace(job, root=tmp_path, target=target, drafts=drafts)
    record, arms = measured(block, own), block.arms[1:]
    texts, runs = texts_of([(block, record)]), {run["run"]: run for run in record["runs"]}
    drafting, rejected = set(), 0
    for text in play(texts, arms, block, own, replays=replays):
        for arm in arms:
            expected = []
            for _, replay, accepted, drafted in filter(any, text["steps"][arm.name]):
                expected.append(Verification(accepted, drafted, bool(replay)))
                expected += [Verification(accepted + 1, accepted + 1, restored=False)] * replay
                rejected += accepted < drafted
                drafting.add(arm.name)
            assert runs[block.run_id(arm, text["prompt"])]["verifications"] == expected
    assert drafting >= {arm.name for arm in arms if arm.n_match}
    assert rejected


@pytest.mark.parametrize(("vocabulary", "tokens", "given", "line"), PAIRS)
def test_the_engine_drafts_where_the_plan_says_so(do, tmp_path, vocabulary, tokens, given, line):
    draft = tmp_path / "draft.gguf"
    write_model(draft, varied(SMALL, vocabulary=vocabulary))
    edit_vocabulary(draft, tokens, **given)
    refused = pytest.raises(MeasurementError, match="vocabs are not compatible")
    with refused if line else nullcontext():
        do(compared(n_predict=8), drafts={"draft": draft})


def test_heads_are_accepted_in_part_or_as_forced_and_need_no_replay(rows_of, make, tmp_path):
    # The partner drafts more than the head, and so more than the target can undo.
    pair = {"method": "mtp", "with": "ngram-simple", "n_match": [2], "with_gamma": [7]}
    block = block_of({"method": "mtp"}, {"method": "dflash", "drafts": ["dflash"]}, pair)
    alone, mtp, dflash, pair = block.arms
    forced = replace(mtp, forced_acceptance=0), replace(dflash, forced_acceptance=1)
    block = replace(block, arms=(alone, mtp, dflash, *forced, pair), context=1024, warmups=0)
    rows = rows_of(
        block,
        target=make("random-hybrid-moe16-f16"),
        drafts={"dflash": make("random-hybrid-dflash")},
    )
    assert len(rows) == 2 * 5
    pairs = [row for row in rows if row["partner"]]
    check_pair(pairs, (tmp_path / "server.mtp-with-ngram-simple.g4-n2-m7.log").read_text())
    assert sum(row["partner_drafted"] for row in pairs) > 0
    rows = [row for row in rows if not row["partner"]]
    for row in rows:
        assert row["replays"] == 0
        assert row["rounds"] == sum(row["accepted_lengths"]) == sum(row["drafted_lengths"])
        if (share := row["forced_acceptance"]) is not None:
            assert row["accepted"] == share * row["drafted"]
        else:
            assert row["common_prefix"] == 64
    for method in ("mtp", "dflash"):
        own = [row for row in rows if method in row["method"]]
        own = [row for row in own if row["forced_acceptance"] is None]
        assert 0 < sum(row["accepted"] for row in own) < sum(row["drafted"] for row in own)
