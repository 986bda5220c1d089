"""One training step of the draft, and how often it agrees with the target."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from chats import ANSWERING, OPENING
from llama import Llama
from torch import Tensor
from torch.nn.functional import linear

# The words that a step's loss looks at besides its labels: frequent ones, and others drawn anew.
FREQUENT, RARE = 3072, 1024
QUESTION_WEIGHT, DISTANCE_WEIGHT = 0.3, 0.1
GAMMA = 4


class Chat(NamedTuple):
    """A chat and what the target made of it."""

    tokens: Tensor  # [n]
    answer: int  # where the answer begins
    hidden: Tensor  # [n, HIDDEN], bfloat16


class Batch(NamedTuple):
    """Chats side by side, padded, and the places that count."""

    tokens: Tensor  # [chats, positions]
    places: Tensor  # [chats, positions], bool
    weights: Tensor  # [places]
    labels: Tensor  # [places], the next token
    hidden: Tensor  # [places, HIDDEN], the target's


def load_chats(path: Path) -> list[Chat]:
    """Read what `save_chats` wrote."""
    with np.load(path) as data:
        tokens = torch.from_numpy(data["tokens"].astype(np.int64))
        hidden = torch.from_numpy(data["hidden"]).view(torch.bfloat16)
        lengths, answers = data["lengths"].tolist(), data["answers"].tolist()
    parts = zip(tokens.split(lengths), answers, hidden.split(lengths), strict=True)
    return [Chat(*part) for part in parts]


def make_batch(chats: Sequence[Chat]) -> Batch:
    """Pad `chats`; the opening, the words that the template forces and the ends do not count."""
    width = -(-max(len(chat.tokens) for chat in chats) // 16) * 16  # attention is faster so
    tokens = torch.zeros(len(chats), width, dtype=torch.long)
    weights = torch.zeros(len(chats), width)
    for row, chat in enumerate(chats):
        tokens[row, : len(chat.tokens)] = chat.tokens
        weights[row, len(OPENING) - 1 : chat.answer - len(ANSWERING)] = QUESTION_WEIGHT
        weights[row, chat.answer - 1 : len(chat.tokens) - 1] = 1
    places = weights > 0
    hidden = torch.cat([c.hidden[p[: len(c.tokens)]] for c, p in zip(chats, places, strict=True)])
    labels = tokens.roll(-1, 1)[places]
    return Batch(tokens, places, weights[places], labels, hidden)


def learn(draft: Llama, head: Tensor, batch: Batch, words: Tensor, share: float) -> Tensor:
    """Add `share` of the batch's gradient; return the weighted cross-entropy and distance.

    The loss is the mean of two cross-entropies, with the target's distribution (`head` is its head)
    and with the next token, and the distance of the final states. The cross-entropies look at
    `words` alone, which hold all labels. Their gradient by the logits is known: what the draft
    expects less what the loss wants.
    """
    states = draft(batch.tokens)[batch.places]
    logits = linear(states.bfloat16(), draft.embedding[words])
    scale = batch.weights[:, None] / batch.weights.sum() * share
    with torch.no_grad():
        wanted = linear(batch.hidden, head[words]).softmax(1, dtype=torch.float32)
        labels = torch.searchsorted(words, batch.labels)[:, None]
        wanted.scatter_add_(1, labels, torch.ones(len(labels), 1))
        expected = logits.softmax(1, dtype=torch.float32)
        likelihood = expected.gather(1, labels).log()
        gradient = expected.sub_(wanted, alpha=0.5).mul_(scale).to(logits.dtype)
    theirs = batch.hidden.float()
    distance = ((states - theirs).square().mean(1, keepdim=True) * scale).sum()
    distance = distance / theirs.square().mean()
    torch.autograd.backward([logits, DISTANCE_WEIGHT * distance], [gradient, None])
    return torch.stack([-(likelihood * scale).sum(), distance.detach()])


def accepted_at(agrees: Sequence[bool], gamma: int = GAMMA) -> list[int]:
    """Return for each round how many of `gamma` drafted tokens the target accepts.

    `agrees` says for each token of a greedy text whether the draft would have written it.
    """
    rounds, place = [], 1  # the first token comes with the prompt
    while place < len(agrees):
        run = [*agrees[place : place + gamma], False].index(False)
        rounds.append(run)
        place += run + 1
    return rounds


@torch.inference_mode()
def judge(draft: Llama, chats: Sequence[Chat]) -> dict[str, float]:
    """Return the draft's agreement and its acceptance rate on the answers of `chats`."""
    agreements: list[list[bool]] = []
    for first in range(0, len(chats), 16):
        part = chats[first : first + 16]
        batch = make_batch(part)
        states = draft(batch.tokens)
        for chat, row in zip(part, states, strict=True):
            logits = linear(row[chat.answer - 1 : len(chat.tokens) - 1].bfloat16(), draft.embedding)
            agreements.append((logits.argmax(1) == chat.tokens[chat.answer :]).tolist())
    rounds = [run for agrees in agreements for run in accepted_at(agrees)]
    together = [agrees for answer in agreements for agrees in answer]
    return {
        "agreement": sum(together) / len(together),
        "acceptance": sum(rounds) / (GAMMA * len(rounds)),
    }
