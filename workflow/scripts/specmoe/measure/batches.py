"""What a model holds likely after a context, by the batches in which the context was read.

A batch of several rows takes other kernels than a single row, and their rounding differs. Reading
a context in batches of another width, with no draft about, shows what that alone does to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specmoe.engine.server import Server


@dataclass(frozen=True)
class Candidate:
    """A token, and the natural logarithm of its probability."""

    token: int
    logprob: float


def batches(count: int, width: int) -> list[int]:
    """Return the sizes of full batches of `width` that end at `count`; the first may be smaller."""
    first = count % width
    return [first] * bool(first) + [width] * (count // width)


def read_in_batches(
    server: Server, prompt: Sequence[int], tokens: Sequence[int], sizes: Iterable[int], asked: int
) -> Iterator[list[Candidate]]:
    """Yield the `asked` likeliest next tokens, best first, after a prompt and after each batch.

    The prompt is read as every run reads it, `tokens` after it in batches of `sizes`; sizes of 1
    are what generating without a draft does. Raises MeasurementError if the server reads otherwise.
    """
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
        )
        if answer["timings"]["prompt_n"] != (size or len(prompt)):
            raise server.fault(
                f"the server read {answer['timings']['prompt_n']} tokens at once instead of"
                f" {size or len(prompt)}"
            )
        [first] = answer["completion_probabilities"]
        yield [Candidate(one["id"], one["logprob"]) for one in first["top_logprobs"]]
