"""Chats that the target writes with itself: a sampled question, then its greedy answer.

No data set is used. The target continues the opening of its own chat template with a user's turn,
drawn at temperature 1 from its 50 likeliest tokens, and answers it at temperature 0.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from llama import HEAD, HIDDEN, KV_HEADS, Cache, Llama
from torch import Tensor

POSITIONS = 416
QUESTION = 160  # the longest question's tokens, and the opening's
TURN_END = 2  # <|im_end|>
# The template's opening up to `<|im_start|>user\n`, and `<|im_end|>\n<|im_start|>assistant\n`.
OPENING = [
    1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407,
    19712, 8182, 2, 198, 1, 4093, 198,
]  # fmt: skip
ANSWERING = [2, 198, 1, 520, 9531, 198]
# Phases of a chat: 0 is the question, those up to _ANSWER are the words of ANSWERING.
_ANSWER, _DONE = len(ANSWERING), len(ANSWERING) + 1
_LEAST_ROWS = 12
HELD_OUT = 48  # chats


class Wave(NamedTuple):
    """Chats that are written together, one token of each at a time."""

    tokens: Tensor  # [chats, POSITIONS]
    hidden: Tensor  # [chats, POSITIONS, HIDDEN], the normed final states
    phase: Tensor  # [chats]
    caches: list[Cache]

    def keep(self, rows: Tensor) -> "Wave":
        """Return the wave with `rows` alone."""
        caches = [(key[rows], value[rows]) for key, value in self.caches]
        return Wave(self.tokens[rows], self.hidden[rows], self.phase[rows], caches)


def _open(model: Llama, rows: int) -> Wave:
    shape = (rows, KV_HEADS, POSITIONS, HEAD)
    caches = [
        (torch.zeros(shape, dtype=torch.bfloat16), torch.zeros(shape, dtype=torch.bfloat16))
        for _ in model.blk
    ]
    tokens = torch.zeros(rows, POSITIONS, dtype=torch.long)
    tokens[:, : len(OPENING)] = torch.tensor(OPENING)
    hidden = torch.zeros(rows, POSITIONS, HIDDEN, dtype=torch.bfloat16)
    hidden[:, : len(OPENING)] = model(tokens[:, : len(OPENING)], caches).bfloat16()
    return Wave(tokens, hidden, torch.zeros(rows, dtype=torch.long), caches)


def _choose(logits: Tensor, wave: Wave, position: int, draw: torch.Generator) -> None:
    """Write the token of `position` in each chat and move its phase on."""
    phase = wave.phase
    values, likeliest = logits.float().topk(50)
    noise = torch.empty_like(values).exponential_(generator=draw)
    drawn = likeliest.gather(1, (values.softmax(1) / noise).argmax(1, keepdim=True))[:, 0]
    drawn[(phase == 0) & (position >= QUESTION)] = TURN_END
    token = torch.where(phase == 0, drawn, likeliest[:, 0])
    forced = (phase > 0) & (phase < _ANSWER)
    token[forced] = torch.tensor(ANSWERING)[phase[forced]]
    wave.tokens[:, position] = token
    ends = token == TURN_END
    after = torch.where(forced, phase + 1, _ANSWER + ends.long())
    wave.phase[:] = torch.where(phase == 0, ends.long(), after.where(phase != _DONE, phase))


def _loops(tokens: Tensor) -> Tensor:
    """Say which chats go round: their last 48 tokens repeat what is up to 48 tokens before."""
    return torch.stack(
        [
            (tokens[:, -48:] == tokens[:, -48 - period : -period]).all(1)
            for period in range(1, 49)
            if tokens.shape[1] >= 48 + period
        ]
    ).any(0)


def write_wave(model: Llama, rows: int, seed: int) -> list[tuple[np.ndarray, int, np.ndarray]]:
    """Return chats: tokens, where the answer begins, and hidden states as bfloat16's bits."""
    draw = torch.Generator().manual_seed(seed)
    wave, chats = _open(model, rows), []
    head = model.embedding
    for position in range(len(OPENING), POSITIONS):
        logits = torch.nn.functional.linear(wave.hidden[:, position - 1], head)
        _choose(logits, wave, position, draw)
        states = model(wave.tokens[:, position : position + 1], wave.caches, position)
        wave.hidden[:, position] = states[:, 0].bfloat16()
        if position % 16 == 0 and position > 150:
            looping = _loops(wave.tokens[:, : position + 1]) & (wave.phase == _ANSWER)
            wave.phase[looping] = _DONE
        over = position == POSITIONS - 1 or int((wave.phase != _DONE).sum()) < _LEAST_ROWS
        done = (wave.phase == _DONE) | over
        if over or done.float().mean() > 0.2:
            chats += _cut(wave, done, position + 1)
            wave = wave.keep(~done)
        if over:
            break
    return chats


def _cut(wave: Wave, done: Tensor, end: int) -> list[tuple[np.ndarray, int, np.ndarray]]:
    """Return the chats of the rows `done` that have an answer."""
    answering, chats = torch.tensor(ANSWERING), []
    for row in done.nonzero()[:, 0].tolist():
        tokens = wave.tokens[row, :end]
        windows = tokens[len(OPENING) :].unfold(0, len(ANSWERING), 1)
        begins = (windows == answering).all(1).nonzero()
        if not len(begins) or begins[0, 0] < 3:
            continue
        begin = len(OPENING) + int(begins[0, 0]) + len(ANSWERING)
        ends = (tokens[begin:] == TURN_END).nonzero()
        stop = begin + int(ends[0, 0]) + 1 if len(ends) else end
        bits = wave.hidden[row, :stop].contiguous().view(torch.int16).numpy().copy()
        chats.append((tokens[:stop].int().numpy(), begin, bits))
    return chats


def save_chats(path: Path, chats: list[tuple[np.ndarray, int, np.ndarray]]) -> None:
    """Write `chats` to `path` (.npz), whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        tokens=np.concatenate([tokens for tokens, _, _ in chats]),
        lengths=np.array([len(tokens) for tokens, _, _ in chats]),
        answers=np.array([begin for _, begin, _ in chats]),
        hidden=np.concatenate([hidden for _, _, hidden in chats]),
    )
    part.replace(path)


def held_out(chats: int) -> list[int]:
    """Return which of the first wave's `chats` are kept from training."""
    return np.random.default_rng(0).permutation(chats)[:HELD_OUT].tolist()
