"""What the console prints while a block is measured: a line a minute, and what disturbed it.

Modules that measure log an event for every run and every rejected attempt; sentences are made here
alone. No result depends on them, so an edit here makes no block stale.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from specmoe.words import counted

SILENCE_S = 60.0
BUSY = "This machine is busy, which disturbs what is measured: stop other programs."
ONCE_MORE = "measured once more at the end of the campaign"
KEPT_OUT = "kept out of the estimates"
_NAMED = 3


class Done(NamedTuple):
    """So many runs of the block are measured."""

    runs: int


class Rejected(NamedTuple):
    """The machine disturbed an attempt at a run or a load."""

    run: str  # within its block
    reason: str
    again: bool  # whether another attempt follows
    busy: bool  # whether other programs are the reason


class Commentary(logging.Handler):
    """Prints, while its context is open, how far a block is and what disturbs it.

    `left` puts the campaign's progress into words, given the seconds that the block has taken and
    those that it may take in all; both include failed attempts. `plan` is `plan.json`, which the
    workflow writes when it starts: that the machine is busy is printed once a start. `last_chance`
    is whether no other measurement of the block follows.
    """

    def __init__(
        self,
        block: str,
        runs: int,
        left: Callable[[float, float], str],
        *,
        plan: Path,
        last_chance: bool,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Know the block; nothing is printed yet."""
        super().__init__(logging.DEBUG)
        self._block, self._runs, self._left = block, runs, left
        self._plan, self._last_chance, self._clock = plan, last_chance, clock
        self._began = self._spoke = 0.0
        self._done = self._rejected = 0

    def __enter__(self) -> Self:
        """Receive the events of the room that measures."""
        self._began = self._spoke = self._clock()
        logging.getLogger("specmoe.measure").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Receive no more."""
        logging.getLogger("specmoe.measure").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Print what an event calls for; log lines without one are ignored."""
        event = getattr(record, "event", None)
        if isinstance(event, Done):
            self._done = event.runs
            self._say_now_and_then(event.runs)
        elif isinstance(event, Rejected):
            self._rejected += 1
            warned = event.busy and _warns_first(self._plan)
            fate = _fate(again=event.again, last_chance=self._last_chance)
            news = f": {event.run} was disturbed ({event.reason}), {fate}"
            self._say_now_and_then(self._done + 1, news, immediately=warned)

    def end(self, runs: Sequence[Mapping[str, Any]]) -> str:
        """Return how many runs of the block were disturbed, and what follows; empty without any."""
        again = [run for run in runs if run.get("measured_again")]
        lost = [run["run"].removeprefix(f"{self._block}/") for run in runs if run.get("taken_away")]
        said = f"; {len(again)} of {len(runs)} runs measured again" if again else ""
        if lost:
            named = ", ".join(lost[:_NAMED]) + (", ..." if len(lost) > _NAMED else "")
            fate = _fate(again=False, last_chance=self._last_chance)
            said += f"; {len(lost)} disturbed at every attempt ({named}), {fate}"
        return said

    def _say_now_and_then(self, run: int, news: str = "", *, immediately: bool = False) -> None:
        now = self._clock()
        if now - self._spoke < SILENCE_S and not immediately:
            return
        taken = now - self._began
        left = self._left(taken, taken * self._runs / max(self._done, 1))
        line = f"{left}: {self._block}: run {run} of {self._runs}"
        if self._rejected:
            line += f", {counted(self._rejected, 'attempt')} disturbed"
        print(line + news, flush=True)
        self._spoke = now


def _warns_first(plan: Path) -> bool:
    """Print that the machine is busy unless that was printed since the workflow started."""
    said = plan.parent / "logs/busy"
    if said.exists() and (not plan.exists() or said.stat().st_mtime >= plan.stat().st_mtime):
        return False
    said.parent.mkdir(parents=True, exist_ok=True)
    said.touch()
    print(BUSY, flush=True)
    return True


def _fate(*, again: bool, last_chance: bool) -> str:
    if again:
        return "measured again"
    return KEPT_OUT if last_chance else ONCE_MORE
