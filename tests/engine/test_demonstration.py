"""The demonstration on a real llama-server: the rounds in its log give its generated tokens."""

from dataclasses import replace

import pytest

from specmoe.config.block import PromptSource, Sending, Side, Stop, Template
from specmoe.config.drafting import Drafting
from specmoe.config.methods import Method, is_ngram
from specmoe.config.trace import Demonstration
from specmoe.errors import MeasurementError
from specmoe.measure.trace import record
from specmoe.measure.trace_record import Provenance
from specmoe.models.synthetic import write_model

from ..blocks import DRAFTED, alone, changed, compared, drafting
from ..recipes import SMALL

TOKENS = 40
REPEATED = "def mean(values):\n    return sum(values) / len(values)\n\n\n" * 4


@pytest.fixture
def demonstrate(job, tmp_path):
    """Record the demonstration of a block's last side on its first prompt."""

    def run(block, **files):
        block = replace(block, sides=block.sides[-1:], prompts=block.prompts[:1])
        draft_label = "Draft" if block.draft_model else None
        return record(
            Demonstration(block, "Target", draft_label, "Code", synthetic=True),
            replace(job, **files),
            tmp_path / "plain.log",
            Provenance("e", "c", "cpu", "h", "t", "d" if block.draft_model else None),
        )

    return run


@pytest.fixture
def do(demonstrate):
    """Record the demonstration with a target and a draft."""

    def run(target, draft, side=DRAFTED, **more):
        block = replace(compared(alone(n_predict=TOKENS), sides=(side,)), **more)
        return demonstrate(block, target=target, draft=draft)

    return run


@pytest.fixture
def do_by(demonstrate, make, tmp_path):
    """Record the demonstration of a way of drafting on models of set `methods`."""
    (tmp_path / "repeated.txt").write_text(REPEATED)
    given = {"prompts": (PromptSource("repeated", "repeated.txt"),), "n_predict": 96}

    def run(target, **way):
        block = changed(drafting(**way), target=target, context=1024, **given)
        draft = make(block.draft_model) if block.draft_model else None
        return demonstrate(block, root=tmp_path, target=make(target), draft=draft)

    return run


def generated(recording) -> list[int]:
    return [recording.tokens[0], *(token for one in recording.rounds for token in one.tokens)]


@pytest.mark.parametrize("gamma", [1, 4, 9])
def test_the_rounds_of_a_hybrid_mixture_give_its_tokens_and_replay(do, family, gamma):
    made = do(family["moe"], family["draft"], Side(gamma))
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


def test_a_target_that_drafts_for_itself_is_accepted_and_never_replays(do, family):
    made = do(family["target"], family["target"])
    assert made.acceptance_rate == 1
    assert made.counts.replays == 0


def test_a_chat_is_decoded_to_its_end_and_no_further(do, tmp_path):
    write_model(tmp_path / "chat.gguf", replace(SMALL, end_gain=1.5, chat_template=True))
    chats = PromptSource("chats-code", "code.txt", workload="chats")
    made = do(
        tmp_path / "chat.gguf",
        tmp_path / "chat.gguf",
        prompts=(chats,),
        sendings={"chats": Sending(Template.CHAT)},
        stop=Stop.EOS,
        n_predict=400,
        context=2048,
    )
    assert 3 <= len(made.tokens) < 400
    assert generated(made) == list(made.tokens)
    assert made.prompt_text.startswith("user")


def test_the_same_decoding_gives_the_same_record(do, family):
    one, other = (do(family["moe"], family["draft"]) for _ in range(2))
    assert one.to_json() == other.to_json()


HYBRID = [
    {"method": "draft", "drafts": ["draft_f16"]},
    {"method": "draft", "drafts": ["draft_f16"], "p_min": [0.5]},
    {"method": "mtp"},
    {"method": "eagle3", "drafts": ["eagle3"]},
    {"method": "dflash", "drafts": ["dflash"]},
    {"method": "dspark", "drafts": ["dspark"]},
    {"method": "ngram-simple", "n_match": [2]},
    {"method": "ngram-map-k", "n_match": [2]},
    {"method": "ngram-map-k4v", "n_match": [2]},
    {"method": "ngram-mod", "n_match": [2]},
    {"method": "ngram-cache"},
    {"method": ["ngram-mod", "mtp"], "n_match": [2], "ngram_gammas": [4]},
    {"method": ["ngram-cache", "draft"], "drafts": ["draft_f16"]},
]
FULL = [
    {"method": "draft", "drafts": ["full_draft_f16"]},
    {"method": ["ngram-simple", "mtp"], "n_match": [2]},
]


@pytest.mark.parametrize(
    ("target", "given"),
    [*(("moe_f16", given) for given in HYBRID), *(("full_f16", given) for given in FULL)],
    ids=lambda value: value if isinstance(value, str) else Drafting(**value).name,
)
def test_the_rounds_of_every_method_give_the_tokens_of_the_target_alone(do_by, target, given):
    made = do_by(target, **given)
    assert generated(made) == list(made.tokens) == list(made.plain_tokens)
    counts = made.counts
    assert counts.drafted > 0
    assert counts.accepted + counts.passes == len(made.tokens) - 1
    side, methods = made.demonstration.side, made.demonstration.block.methods
    for one in made.rounds:
        assert len(one.drafted) <= side.longest
        assert (one.method is not None) == bool(one.drafted)
        assert one.method is None or one.method in methods
        for guess in one.drafted:
            if is_ngram(one.method):
                assert guess.probability is None
            else:
                assert max(0.1, side.p_min) <= guess.probability <= 1
    rolls_back = target == "full_f16" or methods[-1] in {
        *(Method.MTP, Method.EAGLE3, Method.DFLASH, Method.DSPARK)
    }
    assert (counts.replays == 0) == rolls_back


def test_a_chain_says_which_method_drafted_each_round(do_by):
    made = do_by("moe_f16", method=["ngram-mod", "mtp"], n_match=[2], ngram_gammas=[6])
    by = {one.method for one in made.rounds}
    assert by >= {Method.NGRAM_MOD, Method.MTP}


def test_a_hybrid_target_replays_only_what_it_cannot_undo(do_by):
    made = do_by("moe_f16", method=["ngram-mod", "mtp"], n_match=[2], ngram_gammas=[8])
    assert made.demonstration.undoes == 4
    assert made.counts.replays > 0
    for one in made.rounds:
        rejected = len(one.drafted) - one.passes[0].accepted
        assert one.passes[0].restored == (rejected > 4)


def test_a_text_that_never_repeats_is_recorded_with_nothing_drafted(do_by):
    made = do_by("full_f16", method="ngram-mod", n_match=[40])
    assert made.counts.drafted == 0
    assert made.acceptance_rate is None
    assert generated(made) == list(made.tokens) == list(made.plain_tokens)


def test_a_method_that_does_not_fit_is_refused_with_the_servers_reason(do_by):
    with pytest.raises(MeasurementError, match="mtp cannot draft for draft_f16 with γ 4: context"):
        do_by("draft_f16", method="mtp")
