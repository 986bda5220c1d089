"""Decodings made up as llama-server would log them: for the tests of what is read from its log.

The lines are those of a server at the debug level, as the engine of November 2026 writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.engine.debug_log import Guess, Pass, Round

CLOCK = "0.00.123.456"
SLOT = "slot   operator(): id  0 | task 0 |"


@dataclass
class Decoding:
    """A log that grows round by round, the tokens it gives, and the rounds to be read from it."""

    log: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=lambda: [7])  # the first comes from the prompt's pass
    rounds: list[Round] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The log as a file has it."""
        return "\n".join(self.log) + "\n"

    def step(self, token: int) -> None:
        """Decode one token without a draft."""
        self._debug(f"{SLOT} max possible draft: 0")
        self._debug(
            f"slot handle_last_: id  0 | task 0 | slot decode token, id={self.tokens[-1]},"
            " n_ctx = 512, n_tokens = 40, truncated = 0"
        )
        self._batch([self.tokens[-1]])
        self.rounds.append(Round(None, (), (Pass((), 0, token, restored=False),)))
        self.tokens.append(token)

    def round(
        self,
        drafted: Sequence[int],
        verdicts: Sequence[tuple[int, int]],
        method: Method = Method.DRAFT,
        *,
        candidates: Sequence[int] = (),
    ) -> None:
        """Draft tokens and verify them.

        Each verdict is how many tokens a pass accepts and the token that it chooses after them;
        all but the last verdict are undone and replayed. `candidates` are logged as well, and not
        drafted.
        """
        told = not is_ngram(method)
        self._draft(drafted, method, candidates=[*drafted, *candidates] if told else [])
        read: list[int] = list(drafted)
        passes = []
        for place, (accepted, own) in enumerate(verdicts):
            restored = place + 1 < len(verdicts)
            self._pass(accepted, read, restored=restored)
            passes.append(Pass(tuple(read), accepted, own, restored))
            read = [*read[:accepted], own]
        guesses = tuple(Guess(token, 0.25 if told else None) for token in drafted)
        self.rounds.append(Round(method, guesses, tuple(passes)))
        self.tokens += read

    def _draft(self, drafted: Sequence[int], method: Method, candidates: Sequence[int]) -> None:
        self._debug(f"{SLOT} max possible draft: 60")
        # The heads that draft a whole block log their candidates without the name of a function.
        source = "" if method in {Method.DFLASH, Method.DSPARK} else "spec        draft: "
        for place, token in enumerate(candidates):
            self._batch([token])
            for rank, candidate in enumerate((token, token + 1, token + 2)):
                # The piece of a token may hold anything, the end of a line too.
                piece = "\n" if candidate % 3 == 0 else f"t{candidate}"
                probability = 0.25 / (1 + rank)
                self._debug(
                    f"{source} - seq_id 0, draft candidate {rank:3d}, pos {place:3d}:"
                    f" {candidate:6d} ({probability:8.3f}) '{piece}'"
                )
        self._debug(
            f"spec common_specu: called impl {METHODS[method].engine}, hist size = 40,"
            f" call_count = 1, gen = {len(drafted)}"
        )

    def _pass(self, accepted: int, read: Sequence[int], *, restored: bool) -> None:
        self._debug(
            f"slot handle_last_: id  0 | task 0 | generate_draft: id={self.tokens[-1]},"
            f" #tokens=40, #draft={len(read)}, pos_next=40"
        )
        self._batch([self.tokens[-1], *read])
        verdict = f"{CLOCK} I {SLOT} accepted {accepted:2d}/{len(read):2d} draft tokens"
        if restored:
            self.log.append(f"{verdict} (restore checkpoint)")
            self._debug(f"{SLOT} restoring speculative checkpoint (pos_min = 39, size = 1024)")
            return
        self.log.append(verdict)
        self._debug(f"{SLOT} add accepted tokens: sampled=1, ids.size={accepted + 1}, n_draft=1")
        self._debug(f"{SLOT} accepted {accepted}/{len(read)} draft tokens, new n_tokens = 44")

    def _batch(self, tokens: Sequence[int]) -> None:
        """Log the tokens of a batch, as a whole and as the engine splits it."""
        for head in ("init: input batch info:", "ubatch_add: added ubatch to split:"):
            self._debug(head)
            self._debug(f"ubatch_print:   n_tokens     = {len(tokens)}")
            for place, token in enumerate(tokens):
                self._debug(
                    f"ubatch_print:  {place:4d}: id = {token:6d} ({f't{token}':>16}),"
                    f" pos = {place:4d}, n_seq_id =  1, seq_id = [0], output = 1"
                )

    def _debug(self, line: str) -> None:
        self.log.append(f"{CLOCK} D {line}")


def every_kind() -> Decoding:
    """Return a decoding in which everything happens that can."""
    decoding = Decoding()
    decoding.round([1, 2, 3, 4], [(4, 5)])  # all accepted
    decoding.round([1, 2, 3, 4], [(2, 9), (3, 6)])  # two accepted, replayed
    decoding.round([1, 2], [(0, 8)])  # none accepted, on a target that need not replay
    decoding.round([3, 4, 5], [(2, 9), (1, 8), (2, 6)])  # the replay was rejected in part
    decoding.round([2], [(1, 3)])  # a last, short one
    decoding.step(4)
    return decoding
