"""Whether an upcycled model computes what its dense model does.

Kernels of experts round otherwise, so two tokens that are about equally likely may change places.
The dense model writes a text, both read it token by token, and their probabilities are compared.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from specmoe.engine.identity import Workplace
from specmoe.engine.job import server_command
from specmoe.engine.machine import physical_cores
from specmoe.engine.server import Server
from specmoe.errors import ModelError
from specmoe.files import card_beside, engine_path, read_text, replace_text
from specmoe.measure.divergence import Candidate, logprob_of, read_in_batches
from specmoe.models.card import ModelCard, load_card

PROMPT_TOKENS: Final = 64
TOKENS: Final = 96
CONTEXT: Final = 256
_CANDIDATES: Final = 100  # a token that is not among them has at most the last one's probability

# In 26 comparisons of copies (F16 with and without AMX, Q8_0, a trained Q4_1 model on seven texts;
# one to three experts a token) the largest median was 0.021 nats, and 0.001 with one expert. Where
# one of four layers has its feed-forward block scaled by 0.95, 0.9, 0.8, it is 0.033, 0.066, 0.15.
_WIDEST_NATS: Final = 0.05

_logger = logging.getLogger(__name__)


def check_upcycled(
    start: Callable[[Path, Sequence[str]], Server],
    source: Path,
    model: Path,
    card: ModelCard,
    text: str,
) -> list[dict[str, Any]]:
    """Compare an upcycled model with its dense one on what this one writes after a text's start.

    `start` gives the server, not yet started, of a model with further words of its command line,
    `card` is the upcycled model's. Returns, with one expert a token and with as many as it uses, at
    how many of `tokens` both have the same likeliest token, and by how many nats their logarithms
    of the text's probabilities differ (median and maximum). Raises ModelError if the median is
    wide.
    """

    def likeliest(server: Server) -> list[list[Candidate]]:
        return [*read_in_batches(server, prompt, tokens[:-1], [1] * (TOKENS - 1), _CANDIDATES)]

    with start(source, ()) as server:
        prompt = server.tokenize(text)[:PROMPT_TOKENS]
        tokens = server.complete(prompt, n_predict=TOKENS, temperature=0, seed=0)["tokens"]
        dense = likeliest(server)
    found = []
    for used in sorted({1, card.experts_used}):
        override = f"{card.architecture}.expert_used_count=int:{used}"
        with start(model, ("--override-kv", override)) as server:
            copied = likeliest(server)
        differences = [
            abs(logprob_of(token, one) - logprob_of(token, other))
            for token, one, other in zip(tokens, dense, copied, strict=True)
        ]
        facts = {
            "tokens": len(tokens),
            "same": sum(a[0].token == b[0].token for a, b in zip(dense, copied, strict=True)),
            "median_nats": median(differences),
            "widest_nats": max(differences),
        }
        words = (
            f"{model}: its logarithms of probabilities differ from those of {source.name} by a"
            f" median of {facts['median_nats']:.3g} nats with {used} used"
        )
        if facts["median_nats"] > _WIDEST_NATS:
            raise ModelError(
                f"{words}, and those of a copy by {_WIDEST_NATS} at most; make it again"
            )
        _logger.info("%s", words)
        found.append({"experts_used": used, **facts})
    return found


def check_on_engine(
    source: Path,
    model: Path,
    text: Path,
    workplace: Workplace,
    environment: Mapping[str, str],
    gpu_layers: int,
    log: Path,
    out: Path,
) -> None:
    """Make sure that an upcycled model computes what its dense one does; write how they differ.

    `text` is read by both, `log` receives the engine's output. Raises ModelError.
    """

    def start(file: Path, words: Sequence[str]) -> Server:
        command = server_command(
            workplace.binaries / "llama-server",
            engine_path(file),
            context=CONTEXT,
            threads=physical_cores(),
            gpu_layers=gpu_layers,
            args=words,
        )
        limits = workplace.start_limit_s, workplace.run_limit_s
        return Server(command, log, *limits, dict(environment))

    found = check_upcycled(start, source, model, load_card(card_beside(model)), read_text(text))
    replace_text(out, json.dumps(found, indent=1) + "\n")
