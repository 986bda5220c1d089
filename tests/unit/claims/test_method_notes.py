"""Notes on a method, each with its numbers on rows of the study, of a campaign, and by hand."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import with_speedups
from specmoe.claims.method_notes import (
    method_notes,
    note_baselines,
    note_builds,
    note_constant_rate,
    note_full_acceptance,
    note_length_unit,
    note_lengths,
    note_models,
)
from specmoe.claims.printed_numbers import Stated, read_stated
from specmoe.config.matrix import PUBLISHED_PASSAGE
from specmoe.models.card import ModelCard
from specmoe.models.expected_sizes import card_of_entry
from specmoe.runs.study_csv import host_of_study

from ..made_card import made_card
from ..paper_analyses import MODELS, without_drafts
from ..published_study import ROOT, analysis_of_runs, config_of_study, needs_csv, runs_of_study

REPORTED = ROOT / "resources/reported"
WORDS = len((ROOT / PUBLISHED_PASSAGE).read_text().split())
LABELS = {"target": "Big", "draft": "Small"}


@pytest.fixture(scope="module")
def published(_study, tmp_path_factory):
    config = config_of_study(_study)
    runs = runs_of_study(config, tmp_path_factory.mktemp("notes"))
    cards = {model: card_of_entry(model, config) for model in config.measured_models}
    analysis = analysis_of_runs(runs, config, cards, host_of_study(config.host.given))
    stated = read_stated(REPORTED)
    return method_notes(runs, with_speedups(runs), analysis, cards, WORDS, stated)


def run(**other: Any) -> dict[str, Any]:
    """Return a row of a run with a draft: 10 rounds of 4 drafted tokens, half of them accepted."""
    row = {
        "protocol": "paired", "engine": "built", "engine_commit": "0123", "suite": "S",
        "block": "S/0", "run": "S/0/code",
        "target": "target", "draft": "draft", "gamma": 4, "prompt": "code", "temperature": 0.0,
        "n_prompt": 12, "prompt_ms": 5.0, "decode_ms": 500.0, "tokens_per_second": 60.0,
        "rounds": 10, "drafted": 40, "accepted": 20, "baseline": None, "target_sha256": "a",
        "draft_sha256": "b",
    }  # fmt: skip
    return row | other


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return rows as `read_runs` types them."""
    counts = dict.fromkeys(["gamma", "n_prompt", "rounds", "drafted", "accepted"], "Int64")
    return pd.DataFrame(list(rows)).astype(counts)


def baseline(**other: Any) -> dict[str, Any]:
    """Return a row of a run without a draft."""
    nothing = {"draft": "none", "gamma": 0, "rounds": None, "drafted": None, "accepted": None}
    return run(suite="N", block="N/0", run="N/0/code", tokens_per_second=50.0) | nothing | other


def table_of_baselines() -> pd.DataFrame:
    """Return the table of baselines of a campaign whose target runs at 50 tok/s alone."""
    row = dict.fromkeys(TABLES["baselines"].columns)
    row |= {"protocol": "paired", "engine": "built", "target": "target", "tokens_per_second": 50.0}
    return pd.DataFrame([row])


def card() -> ModelCard:
    return made_card(type="Q8_0", experts=32, experts_used=8, sha256="a")


@needs_csv
def test_every_note_applies_to_the_published_study_with_its_numbers(published):
    assert published["applies"].all()
    moe = "experts 256, not 128 and experts a token 8, not 2"
    assert published["finding"].tolist() == [
        "In suite F, prompts of 256, 512 and 1024 words have only 156 in 9 of 18 runs"
        " with a draft, so they are the same text.",
        "The target accepts every drafted token in 0 of 144 runs of suite B, 0 of 72 runs"
        " of suite D and 18 of 18 runs of suite F; the text says below 4 % everywhere.",
        "234 of 234 runs with a draft have no baseline of their own prompt: 216 divide by"
        " their target's mean rate over prompts of stated length and 18 divide by llama-bench's"
        " rate for an empty context. Mean rates without a draft in suites without drafts, then in"
        " all suites: Dense 4B 67.242 and 67.242; Dense 9B 33.443 and 33.443; MoE Q4 55.278 and"
        " 55.202; MoE Q8 49.947 and 49.947.",
        "18 of 18 runs with a draft and a prompt of stated length state it in words."
        " n_prompt counts words in 234 of 234 runs with a draft; its lowest value is 1, of prompt"
        " chinese.",
        "Of 18 groups, acceptance rates differ most for MoE Q4 with draft 0.8B at draft"
        " length 8: 12 runs at 1.1 % give 65.2 tok/s, 18 at 100.0 % give 66.9. With 8.30 times the"
        " tokens a round the rate is 1.03 times as high.",
        "The models differ from the text in 9 of 12 facts, 5 by the authors'"
        " discovered_paths.json, commit 4a72d16 and 4 by the published configuration. MoE Q4: type"
        f" UD-Q4_K_XL, not Q4_K_M, {moe}; MoE Q8: type UD-Q8_K_XL, not Q8_0, {moe}; 0.8B: type"
        " UD-Q8_K_XL, not Q8_0; 2B: type UD-Q8_K_XL, not Q8_0; Dense 2B: type UD-Q8_K_XL, not"
        " Q8_0.",
        "306 of 306 rows have no commit of the engine; it is llama.cpp b8240 or b8280.",
    ]
    assert published["basis"][5] == (
        "Table 2 and Section 2.3 of the study, against the files' names and families in the"
        " configuration"
    )


def test_a_published_length_beyond_the_text_is_short_and_a_shorter_one_is_not():
    published = {"protocol": "published", "n_prompt": 7}
    long, short = (run(prompt=f"passage-{length}", **published) for length in (10, 8))
    assert note_lengths(frame(short), 8).finding == "Suite S sends 8 words, as it says."
    both = note_lengths(frame(long, short), 8)
    assert both.applies
    assert both.finding == (
        "In suite S, prompts of 10 words have only 8 in 1 of 2 runs with a draft."
    )
    assert both.basis.endswith("; the study's text has 8 words")


def test_a_paired_prompt_of_fewer_tokens_than_it_says_is_short():
    assert not note_lengths(frame(run(prompt="passage-64", n_prompt=64)), 8).applies
    assert note_lengths(frame(run(prompt="passage-64", n_prompt=63)), 8).applies


def test_a_note_that_no_run_can_answer_says_so():
    assert note_lengths(frame(run()), 8).finding.startswith("No run with a draft has a prompt")
    nothing = with_speedups(frame(baseline()))
    found = note_baselines(nothing, table_of_baselines(), LABELS)
    assert found.finding == "No run is compared with a baseline."
    for itself in ({"draft": "target"}, {"draft_sha256": "a"}):
        found = note_full_acceptance(frame(run(accepted=40, **itself)), None)
        assert found.finding == "No run has tokens that another model drafted."
    # Runs of two engines are not compared.
    rows = frame(run(accepted=0), run(accepted=40, engine="march"))
    found = note_constant_rate(rows, LABELS)
    assert found.finding == "No two runs differ in their acceptance rate alone."


def test_one_rejected_token_keeps_a_suite_from_full_acceptance():
    whole, less = run(accepted=40), run(accepted=39)
    assert note_full_acceptance(frame(whole, whole), None).applies
    assert not note_full_acceptance(frame(whole, less), None).applies
    assert note_full_acceptance(frame(whole, less | {"suite": "T"}), None).applies


@pytest.mark.parametrize(
    ("link", "protocol", "applies", "words"),
    [
        ("N/0/code", "paired", False, "0 of 1 runs with a draft have no"),
        ("N/0/code", "published", True, "1 divide by llama-bench's rate for an empty context."),
        (None, "published", True, "1 divide by their target's mean rate"),
    ],
)
def test_a_baseline_is_of_the_own_prompt_if_it_is_linked_and_paired(link, protocol, applies, words):
    rows = [
        run(baseline=link, protocol=protocol),
        baseline(protocol=protocol),
        baseline(run="N/0/passage-8", prompt="passage-8", protocol=protocol),
    ]
    note = note_baselines(with_speedups(frame(*rows)), table_of_baselines(), LABELS)
    assert note.applies == applies
    assert words in note.finding


def test_a_length_of_the_published_protocol_is_in_words_in_rows_measured_here_too():
    note = note_length_unit(frame(run(prompt="passage-8", protocol="published")), recorded=False)
    assert note.applies
    assert note.finding == (
        "1 of 1 runs with a draft and a prompt of stated length state it in words. n_prompt counts"
        " words in 0 of 1 runs with a draft."
    )


def parts(rate: float, accepted: int) -> pd.DataFrame:
    """Return a run of 60 tok/s and no accepted token, and one of that rate and acceptance."""
    return frame(run(accepted=0), run(accepted=accepted, tokens_per_second=rate))


def test_a_rate_that_stays_where_acceptance_changes_is_noted():
    # 1 and 5 tokens a round; half of that, as factors go, is the square root of 5, 2.24.
    assert note_constant_rate(parts(60 * 2.2, 40), LABELS).applies
    assert not note_constant_rate(parts(60 * 2.3, 40), LABELS).applies
    # 1 and 1.4 tokens a round decide nothing.
    assert note_constant_rate(parts(60, 4), LABELS).finding.endswith(", too little to tell.")


def test_a_fact_that_differs_from_the_card_is_named_and_one_that_does_not_is_not():
    columns = ["model", "quantity", "printed", "source", "against"]
    facts = [
        ("target", "type", "Q8_0", "Table 2", "a list"),
        ("target", "experts", "128", "Section 2", "the network"),
    ]
    stated = Stated("4", pd.DataFrame(facts, columns=columns))
    note = note_models({"target": card()}, LABELS, stated)
    assert note.applies
    assert note.finding == (
        "The models differ from the text in 1 of 2 facts, 1 by the network. Big: experts 32, not"
        " 128."
    )
    assert note.basis == "Table 2 and Section 2 of the study, against the models' files"
    same = Stated("4", stated.models.iloc[:1])
    assert note_models({"target": card()}, LABELS, same).finding == (
        "The models differ from the text in 0 of 1 facts."
    )


def test_rows_without_a_commit_are_counted_with_their_engine():
    rows = frame(run(), run(engine="b1 or b2", engine_commit="unknown"))
    note = note_builds(rows)
    assert note.applies
    assert note.finding == "1 of 2 rows have no commit of the engine; it is b1 or b2."
    assert not note_builds(rows[:1]).applies


def test_every_model_of_the_study_has_its_type_stated_once(study):
    models = read_stated(REPORTED).models
    types = models[models["quantity"] == "type"]["model"]
    assert sorted(types) == sorted(study["model_sets"]["study"])
    assert not models.duplicated(["model", "quantity"]).any()


def test_a_campaign_without_drafts_has_every_note_and_none_applies():
    rows, models = (
        frame(baseline(prompt="passage-8")),
        MODELS[:1].assign(model="target", of_model="target"),
    )
    analysis = replace(without_drafts(), models=models, baselines=table_of_baselines())
    notes = method_notes(rows, with_speedups(rows), analysis, {"target": card()}, WORDS, None)
    assert len(notes) == 7
    assert not notes["applies"].any()
