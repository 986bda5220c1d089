"""The demonstration on a real llama-server: the rounds in its log give its generated tokens."""

from dataclasses import replace

import pytest

from specmoe.config.block import Side
from specmoe.config.trace import Demonstration
from specmoe.errors import MeasurementError
from specmoe.measure.trace import record
from specmoe.measure.trace_record import Provenance
from specmoe.models.synthetic import write_model

from ..attention_only import CORE_LAYERS, write_attention_only
from ..blocks import DRAFTED, alone, compared
from ..recipes import SMALL

TOKENS = 40


@pytest.fixture(scope="session")
def mixture(tmp_path_factory):
    """A small MoE that begins with the small draft's layers."""
    path = tmp_path_factory.mktemp("mixture") / "moe.gguf"
    write_model(path, replace(SMALL, layers=8, experts=8, experts_used=2, expert_ffn=256))
    return path


@pytest.fixture(scope="session")
def attention_only(tmp_path_factory):
    """A target without recurrent layers, and a draft for it."""
    folder = tmp_path_factory.mktemp("attention_only")
    for name, layers in (("draft", CORE_LAYERS), ("target", 2 * CORE_LAYERS)):
        write_attention_only(folder / f"{name}.gguf", layers)
    return {name: folder / f"{name}.gguf" for name in ("draft", "target")}


@pytest.fixture
def do(job, tmp_path):
    """Record the demonstration with a target and a draft."""

    def run(target, draft, side=DRAFTED):
        block = compared(alone(n_predict=TOKENS), sides=(side,))
        return record(
            Demonstration(
                block=replace(block, prompts=block.prompts[:1]),
                target_label="Target",
                draft_label="Draft",
                prompt_label="Code",
                synthetic=True,
            ),
            replace(job, target=target, draft=draft),
            tmp_path / "plain.log",
            Provenance("e", "c", "cpu", "h", "t", "d"),
        )

    return run


def generated(recording) -> list[int]:
    return [recording.tokens[0], *(token for one in recording.rounds for token in one.tokens)]


@pytest.mark.parametrize("gamma", [1, 4, 9])
def test_the_rounds_of_a_hybrid_mixture_give_its_tokens_and_replay(do, mixture, family, gamma):
    made = do(mixture, family["draft"], Side(gamma))
    assert generated(made) == list(made.tokens)
    assert len(made.tokens) == TOKENS
    assert made.plain_tokens == made.tokens
    counts = made.counts
    assert 0 < counts.accepted < counts.drafted
    assert counts.replays > 0
    # Every pass gives one token of the target's own, unless it is undone twice.
    assert counts.accepted + counts.passes == TOKENS - 1
    for one in made.rounds:
        assert len(one.drafted) <= gamma
        assert one.passes[0].restored == (one.accepted < len(one.drafted))
    assert set(made.token_texts) >= {*made.tokens, *made.plain_tokens}


def test_a_target_with_attention_only_needs_no_replay(do, attention_only):
    made = do(attention_only["target"], attention_only["draft"])
    assert generated(made) == list(made.tokens)
    assert made.plain_tokens == made.tokens
    counts = made.counts
    assert 0 < counts.accepted < counts.drafted
    assert counts.replays == 0
    assert counts.accepted + counts.passes == TOKENS - 1


def test_a_target_that_drafts_for_itself_is_accepted_and_never_replays(do, family):
    made = do(family["target"], family["target"])
    assert made.acceptance_rate == 1
    assert made.counts.replays == 0


def test_the_same_decoding_gives_the_same_record(do, mixture, family):
    assert do(mixture, family["draft"]).to_json() == do(mixture, family["draft"]).to_json()


def test_drafts_have_their_probabilities(do, mixture, family):
    guesses = [guess for one in do(mixture, family["draft"]).rounds for guess in one.drafted]
    assert all(0.1 <= guess.probability <= 1 for guess in guesses)  # the best of ten


def test_a_draft_of_another_vocabulary_is_refused(do, family, stranger):
    with pytest.raises(MeasurementError, match="drafted nothing; its draft is not in use"):
        do(family["target"], stranger)
