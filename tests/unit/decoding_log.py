"""Decodings made up as llama-server would log them: for the tests of what is read from its log.

The lines are those of a server at the debug level, as the engine of November 2026 writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
        self.rounds.append(Round((), (Pass((), 0, token, restored=False),)))
        self.tokens.append(token)

    def round(self, drafted: Sequence[int], verdicts: Sequence[tuple[int, int]]) -> None:
        """Draft tokens and verify them.

        Each verdict is how many tokens a pass accepts and the token that it chooses after them;
        all but the last verdict are undone and replayed.
        """
        self._draft(drafted)
        read: list[int] = list(drafted)
        known: list[int | None] = list(drafted)
        passes = []
        for place, (accepted, own) in enumerate(verdicts):
            restored = place + 1 < len(verdicts)
            kept = not restored or verdicts[place + 1][0] == accepted + 1
            self._pass(accepted, len(read), restored=restored)
            chosen = own if kept else None
            passes.append(Pass(tuple(known), accepted, chosen, restored))
            read, known = [*read[:accepted], own], [*known[:accepted], chosen]
        self.rounds.append(Round(tuple(Guess(token, 0.25) for token in drafted), tuple(passes)))
        self.tokens += read

    def _draft(self, drafted: Sequence[int]) -> None:
        self._debug(f"{SLOT} max possible draft: 60")
        for place, token in enumerate(drafted):
            for rank, candidate in enumerate((token, token + 1, token + 2)):
                # The piece of a token may hold anything, the end of a line too.
                piece = "\n" if candidate % 3 == 0 else f"t{candidate}"
                probability = 0.25 / (1 + rank)
                self._debug(
                    f"spec        draft:  - seq_id 0, draft candidate {rank:3d}, pos {place:3d}:"
                    f" {candidate:6d} ({probability:8.3f}) '{piece}'"
                )
        self._debug(
            "spec common_specu: called impl draft-simple, hist size = 40, call_count = 1,"
            f" gen = {len(drafted)}"
        )

    def _pass(self, accepted: int, read: int, *, restored: bool) -> None:
        self._debug(
            f"slot handle_last_: id  0 | task 0 | generate_draft: id={self.tokens[-1]},"
            f" #tokens=40, #draft={read}, pos_next=40"
        )
        verdict = f"{CLOCK} I {SLOT} accepted {accepted:2d}/{read:2d} draft tokens"
        if restored:
            self.log.append(f"{verdict} (restore checkpoint)")
            self._debug(f"{SLOT} restoring speculative checkpoint (pos_min = 39, size = 1024)")
            return
        self.log.append(verdict)
        self._debug(f"{SLOT} add accepted tokens: sampled=1, ids.size={accepted + 1}, n_draft=1")
        self._debug(f"{SLOT} accepted {accepted}/{read} draft tokens, new n_tokens = 44")

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
