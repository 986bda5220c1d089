"""Compare near ties with wrong tokens: how far batches alone move a target, and how far errors do.

Usage: python tests/benchmarks/tie_gaps.py results/engines/ID MODELS/draft_0.8b.gguf \
    MODELS/moe_q4.gguf ...

A benchmark, not a test: it judges nothing. For each target it prints

- noise: the same tokens, without a draft, read in batches of some width instead of one by one: by
  how many nats the difference of the two likeliest next tokens changes, how often they change
  places, and the largest gap at which they do;
- departures: where runs first differ from the baseline's tokens, and by how many nats their token
  is behind the baseline's, read one by one. `ties` are real runs with the draft. The others have an
  error planted in the tokens that the target read: a rejected draft left in (as with a recurrent
  state that is not rolled back), a token lost, a token replaced. The other columns are shares:
  those that a fixed tolerance accepts, and those for which reading in batches closes the gap
  (`closed`), moves it by as much (`own`), or moves another gap of the line by as much (`widest`).

Nothing is timed, so the machine may be busy.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, cycle, islice
from math import ceil
from pathlib import Path
from sys import path as module_path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.config.block import Side  # noqa: E402
from specmoe.config.methods import Method  # noqa: E402
from specmoe.engine.flags import speculation_flags  # noqa: E402
from specmoe.engine.machine import physical_cores  # noqa: E402
from specmoe.engine.server import Server, server_command  # noqa: E402
from specmoe.measure.batches import Candidate, batches, read_in_batches  # noqa: E402
from specmoe.measure.divergence import widths  # noqa: E402
from specmoe.measure.trace_record import common_prefix  # noqa: E402

PROMPTS = (48, 256)  # tokens; longer contexts take other kernels of attention
STRIDE = 37
GENERATED = 64
GAMMAS = (4, 8, 16)
WIDTHS = sorted({width for gamma in GAMMAS for width in widths(gamma)})
ALIGNMENTS = 4  # of the batches of one width on the same tokens
ERRORS_AT = (12, 28)
ASKED = 100
TOLERANCES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Text:
    """A prompt, and the tokens that the target generates after it without a draft."""

    prompt: list[int]
    tokens: list[int]


@dataclass(frozen=True)
class Place:
    """The first token that differs from the baseline's: its text, and its position."""

    kind: str
    gamma: int
    text: int
    position: int
    token: int


@dataclass(frozen=True)
class Departure(Place):
    """A place, and by how many nats its token is behind the baseline's, by width of batch."""

    gaps: dict[int, float]

    @property
    def gap(self) -> float:
        """The gap in nats when the target reads one by one."""
        return self.gaps[1]

    @property
    def swayed(self) -> float:
        """The largest change of the gap by batches, in nats."""
        return max(abs(gap - self.gap) for gap in self.gaps.values())


def main() -> None:
    """Parse the command line and print the tables of each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", type=Path, help="folder of a built engine")
    parser.add_argument("draft", type=Path, help="GGUF")
    parser.add_argument("targets", type=Path, nargs="+", help="GGUF")
    parser.add_argument("--texts", type=int, default=24, help="prompts cut from the passage")
    parser.add_argument("--gpu-layers", type=int, default=0)
    args = parser.parse_args()
    for target in args.targets:
        with TemporaryDirectory() as folder:
            asker = Asker(args.engine / "bin/llama-server", Path(folder, "log"), args.gpu_layers)
            texts = list(islice(asker.texts(target), args.texts))
            print(f"{target.stem}: noise, texts of {PROMPTS} tokens and {GENERATED} generated")
            print_noise(asker.noise(target, texts))
            departures = asker.departures(target, args.draft, texts)
            print(f"{target.stem}: departures of {len(texts)} texts")
            print_departures(departures)


class Asker:
    """Consecutive servers of one engine."""

    def __init__(self, binary: Path, log: Path, gpu_layers: int):
        self.binary, self.log, self.gpu_layers = binary, log, gpu_layers

    def server(self, target: Path, draft: Path | None = None, gamma: int = 0) -> Server:
        """Return a server, not yet started, with the command line of a run."""
        speculation = speculation_flags(Method.DRAFT, Side(gamma), draft, self.gpu_layers)
        command = server_command(
            self.binary,
            target,
            context=max(PROMPTS) + GENERATED + 2 * max(GAMMAS),
            threads=physical_cores(),
            gpu_layers=self.gpu_layers,
            speculation=speculation if draft else (),
        )
        return Server(command, self.log, start_limit_s=600, run_limit_s=600)

    def texts(self, target: Path) -> Iterator[Text]:
        """Yield the baselines after pieces of the passage, of each length in turn."""
        with self.server(target) as server:
            ids = server.tokenize((ROOT / "resources/prompts/passage.txt").read_text())
            starts = range(0, len(ids) - max(PROMPTS), STRIDE)
            for start, length in zip(starts, cycle(PROMPTS), strict=False):
                prompt = ids[start : start + length]
                yield Text(prompt, generate(server, prompt))

    def noise(self, target: Path, texts: list[Text]) -> dict[int, list[tuple[float, float]]]:
        """Return, by width, the gap of the two likeliest tokens one by one, and in batches."""
        pairs: dict[int, list[tuple[float, float]]] = {width: [] for width in WIDTHS}
        with self.server(target) as server:
            for text in texts:
                one_by_one = list(read(server, text, text.tokens[:-1], [1] * (GENERATED - 1)))
                for width in WIDTHS:
                    for first in range(0, width, ceil(width / ALIGNMENTS)):
                        pairs[width] += compared(server, text, one_by_one, first, width)
        return pairs

    def departures(self, target: Path, draft: Path, texts: list[Text]) -> list[Departure]:
        """Return where runs with a draft, and runs with errors, differ from the texts' tokens."""
        places = [
            place for gamma in GAMMAS for place in self.left_by_runs(target, draft, gamma, texts)
        ]
        with self.server(draft) as server:
            drafts = [{at: rejected(server, text, at) for at in ERRORS_AT} for text in texts]
        departures = []
        with self.server(target) as server:
            for number, (text, rest) in enumerate(zip(texts, drafts, strict=True)):
                places += left_in_error(server, number, text, rest)
            for place in places:
                gaps = ask(server, texts[place.text], place)
                departures.append(Departure(**asdict(place), gaps=gaps))
        return departures

    def left_by_runs(
        self, target: Path, draft: Path, gamma: int, texts: list[Text]
    ) -> Iterator[Place]:
        """Yield where runs with the draft differ from the texts' tokens."""
        with self.server(target, draft, gamma) as server:
            for number, text in enumerate(texts):
                tokens = generate(server, text.prompt)
                position = common_prefix(tokens, text.tokens)
                if position < GENERATED:
                    yield Place("ties", gamma, number, position, tokens[position])


def generate(server: Server, prompt: list[int], count: int = GENERATED) -> list[int]:
    """Return the tokens that greedy generation gives after a prompt."""
    tokens: list[int] = server.complete(prompt, n_predict=count, temperature=0, seed=0)["tokens"]
    return tokens


def read(
    server: Server, text: Text, tokens: Sequence[int], sizes: Iterable[int]
) -> Iterator[list[Candidate]]:
    """Yield the candidates after the prompt of a text and after each batch of tokens."""
    return read_in_batches(server, text.prompt, tokens, sizes, ASKED)


def compared(
    server: Server, text: Text, one_by_one: list[list[Candidate]], first: int, width: int
) -> Iterator[tuple[float, float]]:
    """Yield the gap of the two likeliest tokens one by one, and after each full batch."""
    sizes = [width] * ((GENERATED - 1 - first) // width)
    if first:
        sizes = [first, *sizes]
    answers = read(server, text, text.tokens, sizes)
    for position, answer in zip(accumulate([0, *sizes]), answers, strict=True):
        if position > first:
            best, second = one_by_one[position][:2]
            yield best.logprob - second.logprob, difference(answer, best.token, second.token)


def difference(answer: list[Candidate], token: int, other: int) -> float:
    """Return by how many nats a token leads another; an unlisted one counts as the last."""
    logprobs = {one.token: one.logprob for one in answer}
    least = answer[-1].logprob
    return logprobs.get(token, least) - logprobs.get(other, least)


def rejected(draft: Server, text: Text, at: int) -> list[int]:
    """Return the tokens of a draft of four that the target rejects at a place."""
    drafted = generate(draft, [*text.prompt, *text.tokens[:at]], min(GAMMAS))
    return drafted[common_prefix(drafted, text.tokens[at:]) :]


def errors(text: Text, at: int, draft: list[int]) -> dict[str, list[int]]:
    """Return, by kind of error, what a target reads instead of a text's first `at` tokens."""
    right = text.tokens[:at]
    return {
        **({"rejected draft left in": [*right, *draft]} if draft else {}),
        "token lost": right[:-1],
        "token replaced": [*right[:-1], (right[-1] + 1) % 256],
    }


def left_in_error(
    server: Server, number: int, text: Text, drafts: dict[int, list[int]]
) -> Iterator[Place]:
    """Yield where a target differs from a text after reading it with an error."""
    for at, draft in drafts.items():
        rest = text.tokens[at:-1]
        for kind, wrong in errors(text, at, draft).items():
            answers = read(server, text, [*wrong, *rest], [len(wrong)] + [1] * len(rest))
            for position, answer in enumerate(islice(answers, 1, None), at):
                if answer[0].token != text.tokens[position]:
                    yield Place(kind, max(GAMMAS), number, position, answer[0].token)
                    break


def ask(server: Server, text: Text, place: Place) -> dict[int, float]:
    """Return a token's gap in nats to the baseline's, by the width of the batches read before."""
    gaps = {}
    for width in (1, *widths(place.gamma)):
        *_, answer = read(server, text, text.tokens, batches(place.position, width))
        gaps[width] = difference(answer, text.tokens[place.position], place.token)
    return gaps


def print_noise(pairs: dict[int, list[tuple[float, float]]]) -> None:
    """Print a line for each width."""
    print("  width  contexts  change q50    q90    q99    max  flips  with a gap up to")
    for width, gaps in pairs.items():
        before, after = np.array(gaps).T
        shown = " ".join(f"{q:6.4f}" for q in np.quantile(abs(after - before), QUANTILES))
        flipped = before[after < 0]
        most = f"{flipped.max():.4f}" if flipped.size else "-"
        print(f"  {width:5} {len(gaps):9}      {shown} {flipped.size:6}  {most}", flush=True)


def print_departures(departures: list[Departure]) -> None:
    """Print a line for each kind."""
    heads = " ".join(f"<={tolerance:4}" for tolerance in TOLERANCES)
    print(f"  {'kind':24} {'n':>3}   gap q10    q50    q90    max  {heads} closed  own widest")
    for kind in dict.fromkeys(one.kind for one in departures):
        members = [one for one in departures if one.kind == kind]
        widest = max(one.swayed for one in members)
        rules: list[Callable[[Departure], bool]] = [
            *(lambda one, most=most: one.gap <= most for most in TOLERANCES),
            lambda one: min(one.gaps.values()) <= 0,
            lambda one: one.gap <= one.swayed,
            lambda one, widest=widest: one.gap <= widest,
        ]
        quantiles = np.quantile([one.gap for one in members], (0.1, *QUANTILES[:2], 1))
        shares = " ".join(f"{np.mean([rule(one) for one in members]):6.1%}" for rule in rules)
        gaps = " ".join(f"{quantile:6.3f}" for quantile in quantiles)
        print(f"  {kind:24} {len(members):3}    {gaps}  {shares} ({widest:.3f})", flush=True)


if __name__ == "__main__":
    main()
