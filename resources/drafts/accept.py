"""Count in llama-server how many of a draft's tokens the target accepts; needs no PyTorch.

`PYTHONPATH=workflow/scripts python resources/drafts/accept.py SERVER TARGET DRAFT CHATS.npz RECORD`
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from specmoe.config.block import Arm
from specmoe.config.methods import Method
from specmoe.engine.job import server_command, speculation_flags
from specmoe.engine.responses import ACCEPTED, ACCEPTED_AT, DRAFTED, ROUNDS
from specmoe.engine.server import Server

ROOT = Path(__file__).resolve().parents[2]
GAMMA, LONGEST, CONTEXT, OF_CATEGORY = 4, 256, 4096, 2
HELD_OUT = 48  # as in `chats.held_out`
NAMES = {DRAFTED: "drafted", ACCEPTED: "accepted", ROUNDS: "rounds"} | {
    ACCEPTED_AT.format(position=position): f"accepted_at_{position + 1}"
    for position in range(GAMMA)
}


def _chat(server: Server, asked: str | list[dict[str, str]]) -> list[int]:
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    return server.tokenize(server.apply_template(messages, None))


def chats(server: Server, held_out: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    """Yield a category and a prompt's tokens: held-out questions, and chats of this repository."""
    with np.load(held_out) as data:
        starts = np.cumsum(data["lengths"]) - data["lengths"]
        for chat in np.random.default_rng(0).permutation(len(starts))[:count]:
            end = starts[chat] + data["answers"][chat]
            yield "held out", data["tokens"][starts[chat] : end].tolist()
    lines = (ROOT / "config/workload.example.jsonl").read_text().splitlines()
    seen: Counter[str] = Counter()
    for line in map(json.loads, lines):
        seen[line["category"]] += 1
        if seen[line["category"]] <= OF_CATEGORY:
            yield line["category"], _chat(server, line.get("messages") or line["prompt"])
    for file in sorted((ROOT / "resources/prompts").glob("*.txt")):
        yield "resources/prompts", _chat(server, file.read_text().strip())


def count_accepted(command: list[str], log: Path, held_out: Path, count: int) -> dict[str, Counter]:
    """Return the counters of every category."""
    found: dict[str, Counter[str]] = {}
    with Server(command, log, time_limit_s=600) as server:
        before = server.metrics()
        for category, prompt in chats(server, held_out, count):
            answer = server.complete(
                prompt, n_predict=LONGEST, temperature=0, seed=1, until_end=True
            )
            after = server.metrics()
            counts = found.setdefault(category, Counter())
            counts.update(chats=1, tokens=len(answer["tokens"]))
            for key, name in NAMES.items():
                counts[name] += int(after.get(key, 0) - before.get(key, 0))
            before = after
    return found


def main() -> None:
    """Read the command line and add the counts to the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("server", "target", "draft", "held_out", "record"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--count", type=int, default=HELD_OUT)
    arguments = parser.parse_args()
    arm = Arm(gamma=GAMMA, method=Method.DRAFT)
    command = server_command(
        arguments.server,
        arguments.target,
        context=CONTEXT,
        threads=1,
        gpu_layers=0,
        args=speculation_flags(arm, arguments.draft, 0),
    )
    log = arguments.record.with_suffix(".log")
    found = count_accepted(command, log, arguments.held_out, arguments.count)
    record = json.loads(arguments.record.read_text()) | {"acceptance": found}
    arguments.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
