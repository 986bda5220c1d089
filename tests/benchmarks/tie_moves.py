"""How far batches move a model's gaps at single places, and how wide gaps after planted errors are.

Usage: python tests/benchmarks/tie_moves.py LLAMA_SERVER MODEL.gguf TEXTS TOKENS

A benchmark, not a test: it judges nothing, and times nothing. Behind each of up to six prompts the
model writes TOKENS; they are read one by one and in batches. Printed are quantiles, in nats, of how
far these move the lead of the likeliest token, and the shares of wrong tokens, after an error
planted in the text (a token lost, one left in, one replaced), that are within some gap.
"""

from pathlib import Path
from sys import argv
from sys import path as module_path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.engine.job import server_command  # noqa: E402
from specmoe.engine.server import Server  # noqa: E402
from specmoe.measure.divergence import read_in_batches  # noqa: E402

PROMPTS = (
    "def quicksort(values):\n",
    "Explain in detail how a hash table works.\n",
    "Write a short story about a lighthouse keeper.\n",
    "List ten animals and what they eat.\n",
    "Why is the sky blue?\n",
    "The history of Rome begins",
)
SIZES = (1, 2, 4, 8, 9, 17)
NEAR = 1.0  # nats: leads of more are no near ties


def moves_of(server: Server, prompt: list[int], tokens: list[int]) -> list[float]:
    read: dict[int, dict[int, dict[int, float]]] = {}
    for size in SIZES:
        count = len(tokens) // size
        batches = read_in_batches(server, prompt, tokens[: count * size], [size] * count, 50)
        for number, candidates in enumerate(batches):
            read.setdefault(number * size, {})[size] = candidates
    moves = []
    for position, by_size in read.items():
        first, second = sorted(by_size[1], key=by_size[1].get, reverse=True)[:2]
        lead = by_size[1][first] - by_size[1][second]
        if position and lead < NEAR:
            both = (of for of in by_size.values() if {first, second} <= of.keys())
            moves += [abs(of[first] - of[second] - lead) for of in both][1:]
    return moves


def likeliest(server: Server, text: list[int]) -> dict[int, float]:
    answer = server.complete(
        text, n_predict=1, temperature=0, seed=0, n_probs=1000, cache_prompt=True
    )
    [first] = answer["completion_probabilities"]
    return {token["id"]: token["logprob"] for token in first["top_logprobs"]}


def gaps_after_errors(server: Server, prompt: list[int], tokens: list[int]) -> list[float]:
    true = [likeliest(server, prompt + tokens[:end]) for end in range(len(tokens))]
    gaps = []
    for end in range(2, len(tokens)):
        second = sorted(true[end - 1], key=true[end - 1].get, reverse=True)[1]
        *before, last = tokens[:end]
        for wrong in ([*before[:-1], last], [*before, second, last], [*before, second]):
            found = max(likeliest(server, prompt + wrong).items(), key=lambda item: item[1])[0]
            best = max(true[end], key=true[end].get)
            if found != best:
                gaps.append(true[end][best] - true[end].get(found, min(true[end].values())))
    return gaps


def main(program: str, model: str, texts: str, n_tokens: str) -> None:
    command = server_command(Path(program), Path(model), context=1024, threads=2, gpu_layers=0)
    moves, gaps = [], []
    with TemporaryDirectory() as folder, Server(command, Path(folder) / "log", 600) as server:
        for text in PROMPTS[: int(texts)]:
            prompt = server.tokenize(text)
            answer = server.complete(prompt, n_predict=int(n_tokens), temperature=0, seed=1)
            moves += moves_of(server, prompt, answer["tokens"])
            gaps += gaps_after_errors(server, prompt, answer["tokens"])
    found = [move for move in moves if move]
    print(f"{len(moves)} moves, {len(found)} above 0, sd of their logarithms", np.log(found).std())
    print("quantiles 5 25 50 75 95 100 %", np.quantile(moves, [0.05, 0.25, 0.5, 0.75, 0.95, 1]))
    for within in (0.03, 0.1, 0.3, 0.6):
        print(
            f"within {within} nats: {np.mean(np.array(gaps) <= within):.2%} of {len(gaps)} errors"
        )


if __name__ == "__main__":
    main(*argv[1:])
