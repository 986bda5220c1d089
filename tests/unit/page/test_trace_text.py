"""The demonstration in the terminal: signs that need no colour, and no harm."""

import os
import pty
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from specmoe.config.methods import Method
from specmoe.page.trace_text import WIDTH, describe

from ..decoding_log import Decoding
from ..made_recording import chain, nothing_drafted, of_decoding, recording

ESCAPE = "\x1b"


def told(made) -> str:
    """Return the text of a record, with single spaces."""
    return " ".join(describe(made, colour=False).split())


def rows(text: str) -> list[str]:
    """Return the rows of the rounds, with single spaces."""
    body = text.partition("prompt    ")[2].partition("\n\n")[0]
    return [" ".join(line.split()) for line in body.splitlines()]


def test_every_round_says_what_was_drafted_accepted_replaced_and_replayed():
    assert rows(describe(recording(), colour=False)) == [
        "target → seven",
        "round 1 draft ␣one two ↵ ⟨4⟩",
        "target ✓ ␣one ✓ two ✓ ↵ ✓ ⟨4⟩ → ⟨5⟩ (4 of 4 accepted)",
        "round 2 draft ␣one two ↵ ⟨4⟩",
        "target ✓ ␣one ✓ two ✗ ↵ · ⟨4⟩ → t9 (2 of 4 accepted)",
        r"↺ replay ✓ ␣one ✓ two ✓ t9 → \u001b[31m (3 of 3 accepted)",
        "round 3 draft ␣one two",
        "target ✗ ␣one · two → <b> (0 of 2 accepted)",
        "round 4 draft ↵ ⟨4⟩ ⟨5⟩",
        "target ✓ ↵ ✓ ⟨4⟩ ✗ ⟨5⟩ → t9 (2 of 3 accepted)",
        "↺ replay ✓ ↵ ✗ ⟨4⟩ · t9 → <b> (1 of 3 accepted)",
        r"↺ replay ✓ ↵ ✓ <b> → \u001b[31m (2 of 2 accepted)",
        "round 5 draft two",
        "target ✓ two → ↵ (1 of 1 accepted)",
        "no draft target → ⟨4⟩",
    ]


def test_it_names_the_method_its_parameters_the_engines_type_and_the_file():
    assert (
        "Speculative decoding, round by round: MoE Q4 (target), greedy"
        " Drafts: draft model (0.8B), γ = 4; llama-server's type draft-simple, file draft The"
    ) in told(recording())
    assert (
        "Drafts: n-gram pool + MTP, γ = 4, n = 3, n-grams to 8, p ≥ 0.5; llama-server's type"
        " ngram-mod,draft-mtp The models"
    ) in told(chain())


def test_a_chain_says_what_drafted_and_passes_without_a_draft_share_a_row():
    assert rows(describe(chain(), colour=False)) == [
        "target → t7",
        "no draft target → t1 → t2",
        "round 1 draft t3 t4 (MTP)",
        "target ✓ t3 ✗ t4 → t5 (1 of 2 accepted)",
        "round 2 draft t6 t7 t8 (n-gram pool)",
        "target ✓ t6 ✓ t7 ✓ t8 → t9 (3 of 3 accepted)",
        "no draft target → t10",
    ]


def test_a_replay_is_explained_by_what_its_target_can_undo():
    decoding = Decoding()
    decoding.round(list(range(1, 9)), [(1, 9), (2, 5)], Method.NGRAM_MOD)
    for methods, can in (
        ((Method.NGRAM_MOD,), "cannot undo half a pass"),
        ((Method.NGRAM_MOD, Method.MTP), "can undo only 4 tokens of a pass"),
    ):
        text = describe(of_decoding(decoding, *methods), colour=False)
        assert f"↺ replay: a hybrid target {can}, so the engine restores" in text


def test_a_method_that_found_nothing_says_so():
    text = told(nothing_drafted())
    assert "no draft target → t1 → t2 → t3" in text
    assert "(0 verifications, 0 replays, 3 without a draft): 1.00 tokens per pass." in text
    assert "Nothing was drafted: another prompt or other parameters may show more." in text
    assert "Accepted" not in text


def test_it_ends_with_the_totals():
    text = told(recording())
    assert "17 tokens: the first from the prompt's pass, 16 from 9 passes of the target" in text
    assert "(5 verifications, 3 replays, 1 without a draft): 1.78 tokens per pass." in text
    assert "Without a draft they take 16 passes." in text
    assert "Accepted: 8 of 14 drafted tokens (57.1%)." in text
    assert "Without a draft the target gives the same 17 tokens." in text
    assert "not timed: a demonstration, not a measurement" in text
    assert "The models have random weights: the text is meaningless" in text


def test_it_says_where_the_text_differs_without_a_draft():
    made = recording()
    plain = (*made.tokens[:6], 2, *made.tokens[7:])
    assert "gives the same 6 tokens and then two instead of ␣one." in told(
        recording(plain_tokens=plain)
    )


def test_signs_that_do_not_occur_are_not_explained():
    decoding = Decoding()
    decoding.round([1, 2], [(1, 9)])
    text = describe(of_decoding(decoding, Method.DRAFT), colour=False)
    assert "replay:" not in text
    assert "⟨n⟩" not in text


@pytest.mark.parametrize("colour", [True, False])
def test_colour_changes_nothing_but_colour(colour):
    text = describe(recording(), colour=colour)
    assert (ESCAPE in text) == colour
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert plain == describe(recording(), colour=False)
    # Whatever a token or the prompt holds, no control character of theirs reaches the terminal.
    assert all(line.isprintable() for line in plain.splitlines())


def test_rows_are_as_wide_as_a_terminal():
    drafted = list(range(1, 12)) * 3
    decoding = Decoding()
    decoding.round(drafted, [(len(drafted), 4)])
    made = of_decoding(decoding, Method.DRAFT)
    text = describe(replace(made, text="long" * 100, prompt_text="word " * 500), colour=False)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" in text


def shown(root, tmp_path, **environment) -> str:
    """Return what the script prints to a terminal."""
    trace = tmp_path / "trace.json"
    trace.write_text(recording().to_json(), encoding="utf-8")
    script = root / "workflow/scripts/demo_trace.py"
    command = [sys.executable, str(script), "--trace", str(trace), "--log", str(tmp_path / "log")]
    ours, terminal = pty.openpty()
    bare = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(command, stdout=terminal, env=bare | environment) as process:
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # Linux raises it once the other side is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return text.decode()


def test_a_terminal_gets_colours_unless_no_color_is_set_and_the_log_none(root, tmp_path):
    assert ESCAPE in shown(root, tmp_path)
    assert ESCAPE not in (tmp_path / "log").read_text()
    assert ESCAPE not in shown(root, tmp_path, NO_COLOR="1")
