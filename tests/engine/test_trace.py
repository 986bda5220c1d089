"""The demonstration on a real llama-server: its rounds are those that the engine counts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from specmoe.config.block import PromptSource, Sending, Stop, Template
from specmoe.measure.trace import record

from ..blocks import alone, compared, drafted
from ..recipes import SMALL, varied, write_models

TOKENS = 40


@pytest.fixture
def do(job):
    """Record the demonstration with a target and a draft model."""

    def run(target, draft, gamma=4, **more):
        block = replace(compared(alone(n_predict=TOKENS), arms=(drafted(gamma),)), **more)
        block = replace(block, prompts=block.prompts[:1])
        config = SimpleNamespace(label=str.title, weights=lambda _: {"random"})
        return record(block, replace(job, target=target, drafts={"draft": draft}), config)

    return run


def test_the_rounds_give_the_text_of_the_target(do, family):
    made = do(family["moe"], family["draft"], gamma=9)
    assert len(made.tokens) == TOKENS
    assert 0 < made.accepted < made.drafted
    assert made.accepted + len(made.rounds) == TOKENS - 1
    assert max(len(one.drafted) for one in made.rounds) == 9


def test_a_chat_is_decoded_to_its_end_and_no_further(do, tmp_path):
    [chat] = write_models(tmp_path, chat=varied(SMALL, chat=True)).values()
    made = do(
        chat,
        chat,
        prompts=(PromptSource("chats-code", "code.txt", workload="chats"),),
        sendings={"chats": Sending(Template.CHAT)},
        stop=Stop.EOS,
        n_predict=400,
        context=2048,
    )
    assert 3 <= len(made.tokens) < 400
    assert made.accepted == made.drafted
    assert made.prompt_text.startswith("user")
