"""A model's likeliest next tokens, by the batches in which it read the context.

A batch of several rows takes other kernels than a single row, and their rounding differs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specmoe.engine.server import Server

_WHOLE = "a"


@dataclass(frozen=True)
class Candidate:
    """A token, and the natural logarithm of its probability."""

    token: int
    logprob: float


def logprob_of(token: int, candidates: Sequence[Candidate]) -> float:
    """Return the logarithm of a token's probability, or that of the last candidate, if it is none.

    The latter is at least as high.
    """
    return {one.token: one.logprob for one in candidates}.get(token, candidates[-1].logprob)


def batches(count: int, width: int) -> list[int]:
    """Return the sizes of batches of `width` for `count` tokens; only the first may be smaller."""
    full, rest = divmod(count, width)
    sizes = [width] * full
    return [rest, *sizes] if rest else sizes


def read_in_batches(
    server: Server, prompt: Sequence[int], tokens: Sequence[int], sizes: Iterable[int], asked: int
) -> Iterator[list[Candidate]]:
    """Yield the `asked` likeliest next tokens, best first, after a prompt and after each batch.

    The server reads the prompt as in every run, then `tokens` in batches of `sizes`. With sizes of
    1 it reads as it generates without a draft. Raises MeasurementError if it reads otherwise.
    """
    # The engine leaves out the candidates of a token that ends within a character, so a whole one
    # is sampled in place of the likeliest.
    [*_, whole] = server.tokenize(_WHOLE)
    read = 0
    for size in (0, *sizes):
        read += size
        answer = server.complete(
            [*prompt, *tokens[:read]],
            n_predict=1,
            temperature=0,
            seed=0,
            n_probs=asked,
            reuse=bool(size),
            chosen=whole,
        )
        if answer["timings"]["prompt_n"] != (size or len(prompt)):
            raise server.fault(
                f"the server read {answer['timings']['prompt_n']} tokens at once instead of"
                f" {size or len(prompt)}"
            )
        [first] = answer["completion_probabilities"]
        yield [Candidate(one["id"], one["logprob"]) for one in first["top_logprobs"]]
