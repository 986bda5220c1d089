"""Which texts a draft reads, and what its program prints."""

import pytest

from specmoe.config.matrix import list_readings
from specmoe.config.schema import Config
from specmoe.measure.agreement import Proposal, read_proposals, texts_to_read, widest_move

from ...blocks import alone, compared


def row(run, **more):
    return {
        "run": run,
        "target_model": "target",
        "draft": "draft",
        "draft_model": "draft",
        "method": "draft-simple",
        "protocol": "paired",
        "temperature": 0.0,
        "engine_options": "",
        "prompt": "code",
        "n_prompt": 9,
        "tokens": [1, 2],
        "block": "B/target/draft/r0",
        "baseline": "alone",
    } | more


ALONE = row("alone", draft="none", baseline=None, draft_model=None, method="none", tokens=[1, 2, 3])


def test_repeats_of_a_text_are_read_once_and_other_texts_of_a_prompt_too():
    again = ALONE | {"run": "again", "block": "B/target/draft/r1"}
    other = ALONE | {"run": "other", "tokens": [1, 2, 4]}
    rows = [ALONE, again, other, row("g4"), row("g8"), row("r1", baseline="again")]
    rows += [row("r2", baseline="other")]
    texts = texts_to_read(rows, "draft", {"target"})
    assert texts_to_read(rows, "draft", {"another"}) == []
    assert [text.tokens for text in texts] == [(1, 2, 3), (1, 2, 4)]
    assert {(text.target, text.prompt, text.n_prompt) for text in texts} == {("target", "code", 9)}


@pytest.mark.parametrize(
    "more",
    [
        {"draft_model": "another"},
        {"method": "draft-mtp"},
        {"method": "ngram-mod,draft-simple"},
        {"protocol": "published"},
        {"temperature": 0.7},
        {"engine_options": "-fa off"},
        {"baseline": None},
    ],
)
def test_texts_whose_runs_do_not_follow_from_a_reading_are_left_out(more):
    assert texts_to_read([ALONE, row("g4", **more)], "draft", {"target"}) == []


def test_an_engine_that_times_no_passes_reads_no_texts(study):
    config = Config.model_validate(study)
    blocks = [alone(), compared()]
    assert list_readings(config, blocks) == {"draft": ["target"]}
    assert list_readings(config, [compared(temperature=0.5)]) == {}
    study["measurement"]["pass_samples"] = 0
    assert list_readings(Config.model_validate(study), blocks) == {}


def test_printed_proposals_are_told_apart_by_text():
    line = (
        '{{"text": {}, "position": 0, "token": 5, "agrees": true, "confidence": 0.9,'
        ' "lead_nats": 2.5}}\n'
    )
    one = Proposal(5, True, 0.9, 2.5)
    assert read_proposals(line.format(0) * 2 + line.format(1)) == [[one, one], [one]]


def test_a_move_that_changes_the_token_is_as_wide_as_both_leads():
    one, other = Proposal(5, True, 0.9, 0.25), Proposal(6, False, 0.9, 0.5)
    assert widest_move([[one]], [[other]]) == 0.75
    assert widest_move([[one, other]], [[one._replace(lead_nats=0.5), other]]) == 0.25
