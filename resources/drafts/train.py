"""Distil a small draft from a chat model on a CPU."""

import os

# AMX makes bfloat16 products eight times faster. Where it crashes, set AVX512_CORE_BF16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_AMX")

import argparse
import hashlib
import json
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import torch
from chats import held_out, save_chats, write_wave
from distil import FREQUENT, RARE, Chat, judge, learn, load_chats, make_batch
from export import HEAD_TYPE, write_draft
from gguf import dequantize, quantize
from llama import halve_matrices, read_model
from torch import Tensor

ROWS, FIRST = 256, "0000.npz"  # chats written at a time, and the file of the first
LAYERS, SCALE = [0, 1, 2, 3], 0.25  # the draft starts from these of the target; at first unsure
STEP_CHATS, PART_CHATS = 8, 8
RATE, WARM_UP, COOLING = 4e-3, 10, 0.4  # learning rate; steps of warm-up; share of linear decay
SAVE_S, JUDGE_TOKENS = 120, 80_000


def sample(target: Path, work: Path) -> None:
    """Write the target's chats to `work`/chats without end, a file a wave; those there are kept."""
    model = halve_matrices(read_model(target))
    for seed in count():
        path = work / "chats" / f"{seed:04}.npz"
        if not path.exists():
            with torch.inference_mode():
                save_chats(path, write_wave(model, ROWS, seed))


def _question(chat: Chat) -> tuple[int, ...]:
    return tuple(chat.tokens[: chat.answer].tolist())


class Corpus:
    """The chats written so far. Some of the first wave are held out."""

    def __init__(self, folder: Path):
        """Read the chats of `folder`, waiting for the first wave."""
        self.folder, self.read, self.chats = folder, set[Path](), list[Chat]()
        while not (first := folder / FIRST).exists():
            time.sleep(5)
        chats = load_chats(first)
        self.held_out = [chats[i] for i in held_out(len(chats))]
        self.questions = {_question(chat) for chat in self.held_out}
        self.grow()

    def grow(self) -> None:
        """Add the waves that are new."""
        for path in sorted(set(self.folder.glob("????.npz")) - self.read):
            self.read.add(path)
            self.chats += [c for c in load_chats(path) if _question(c) not in self.questions]
        counts = torch.bincount(torch.cat([c.tokens for c in self.chats]), minlength=49152)
        self.frequent = counts.topk(FREQUENT).indices

    def draw(self, step: int) -> tuple[list[Chat], torch.Generator]:
        """Return the chats of `step`, by length, and what else chance decides in it."""
        chance = torch.Generator().manual_seed(step)
        drawn = torch.randint(len(self.chats), (STEP_CHATS,), generator=chance).tolist()
        return sorted((self.chats[i] for i in drawn), key=lambda c: len(c.tokens)), chance


class Trainer:
    """The draft, its optimizers and its record; saved and read back whole."""

    def __init__(self, target: Path, work: Path, total: int):
        """Start from the target's layers, or go on from `work`/state.pt."""
        self.draft = read_model(target, LAYERS)
        self.draft.output_norm.data *= SCALE
        self.head = self.draft.embedding
        packed = quantize(self.head.float().numpy(), HEAD_TYPE)
        self.draft.embedding = torch.tensor(dequantize(packed, HEAD_TYPE)).bfloat16()
        matrices = [p for p in self.draft.parameters() if p.dim() == 2]
        vectors = [p for p in self.draft.parameters() if p.dim() == 1]
        muon = torch.optim.Muon(
            matrices, lr=RATE, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"
        )
        self.optimizers = [muon, torch.optim.AdamW(vectors, lr=RATE, weight_decay=0)]
        self.path, self.total = work / "state.pt", total
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.record: list[dict[str, float]] = []
        if self.path.exists():
            self.load()

    def load(self) -> None:
        """Go on from the saved state."""
        state = torch.load(self.path)
        self.draft.load_state_dict(state["draft"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
        self.record = state["record"]

    def save(self) -> None:
        """Write the state, whole or not at all, and the record beside it."""
        state = {
            "draft": self.draft.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            **{key: getattr(self, key) for key in ("step", "tokens", "seconds", "record")},
        }
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.path)

    def rate(self) -> float:
        """Return this step's learning rate."""
        left = 1 - self.tokens / self.total
        return RATE * min(1, (self.step + 1) / WARM_UP, max(left, 0) / COOLING)

    def train_step(self, corpus: Corpus) -> Tensor:
        """Learn from some chats; return the two losses."""
        chats, chance = corpus.draw(self.step)
        for optimizer in self.optimizers:
            optimizer.param_groups[0]["lr"] = self.rate()
            optimizer.zero_grad()
        total = torch.zeros(2)
        for first in range(0, STEP_CHATS, PART_CHATS):
            batch = make_batch(chats[first : first + PART_CHATS])
            rare = torch.randint(len(self.head), (RARE,), generator=chance)
            words = torch.cat([corpus.frequent, rare, batch.labels]).unique()
            total += learn(self.draft, self.head, batch, words, PART_CHATS / STEP_CHATS)
        torch.nn.utils.clip_grad_norm_(self.draft.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.step += 1
        self.tokens += sum(len(chat.tokens) for chat in chats)
        return total


def train(target: Path, work: Path, total: int) -> Trainer:
    """Train until `total` tokens are seen; judge and save on the way."""
    corpus, trainer = Corpus(work / "chats"), Trainer(target, work, total)
    saved = time.monotonic()
    recent = None
    judged = trainer.record[-1]["tokens"] if trainer.record else -JUDGE_TOKENS
    while True:
        if trainer.tokens - judged >= JUDGE_TOKENS or trainer.tokens >= total:
            judged = trainer.tokens
            corpus.grow()
            found = judge(trainer.draft, corpus.held_out)
            names = ("cross_entropy", "distance")
            line = {
                "tokens": trainer.tokens,
                "written": sum(len(chat.tokens) for chat in corpus.chats),
                "hours": round(trainer.seconds / 3600, 4),
                "rate": trainer.rate(),
                **dict(zip(names, [] if recent is None else recent.tolist(), strict=False)),
                **found,
            }
            trainer.record.append(line)
            print(json.dumps(line), flush=True)
        if trainer.tokens >= total:
            break
        begin = time.monotonic()
        terms = trainer.train_step(corpus)
        recent = terms if recent is None else recent.lerp(terms, 0.05)
        trainer.seconds += time.monotonic() - begin
        if time.monotonic() - saved > SAVE_S:
            trainer.save()
            saved = time.monotonic()
    trainer.save()
    return trainer


def train_beside_sampler(target: Path, work: Path, total: int) -> None:
    """Train while another process writes chats; write the draft and the record."""
    work.mkdir(parents=True, exist_ok=True)
    sampler = subprocess.Popen([sys.executable, *sys.argv, "--sample"])
    try:
        trainer = train(target, work, total)
    finally:
        sampler.terminate()
    path = work / "draft.gguf"
    write_draft(trainer.draft, target, path)
    record = {"draft": _identity(path), "target": _identity(target), "curve": trainer.record}
    (work / "record.json").write_text(json.dumps(record, indent=1) + "\n")


def _identity(path: Path) -> dict[str, str | int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": path.name, "sha256": digest, "bytes": path.stat().st_size}


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("work", type=Path, help="folder of chats, state, record and draft")
    parser.add_argument("--tokens", type=int, default=10_000_000, help="how many to train on")
    parser.add_argument("--sample", action="store_true", help="write chats and do nothing else")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # for each of the two processes
    if arguments.sample:
        sample(arguments.target, arguments.work)
    else:
        train_beside_sampler(arguments.target, arguments.work, arguments.tokens)


if __name__ == "__main__":
    main()
