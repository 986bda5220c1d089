"""What the console hears of a block: seldom, which run, what follows, and once to stop others."""

import logging
import os

import pytest

from specmoe.commentary import BUSY, KEPT_OUT, ONCE_MORE, Commentary, Done, Rejected

BLOCK = "B/t/d/r0"
REASON = "a thread of the server waited for a CPU for 12.0% of the run"


@pytest.fixture
def clock():
    """A clock that a test moves."""
    return [0.0]


@pytest.fixture
def hear(tmp_path, clock):
    """Return a commentary's ear for events after so many seconds, and the commentary."""

    def left(taken_s, in_all_s):
        return f"{in_all_s - taken_s:.0f} s left"

    def begin(*, last_chance=False):
        commentary = Commentary(
            BLOCK, 48, left,
            plan=tmp_path / "plan.json", last_chance=last_chance, clock=lambda: clock[0],
        )  # fmt: skip

        def event(at, what):
            clock[0] = at
            logger = logging.getLogger("specmoe.measure.live_side")
            logger.setLevel(logging.DEBUG)
            logger.debug("a line of the log", extra={"event": what})

        return commentary, event

    return begin


def rejected(*, again=True, busy=True):
    return Rejected("g8/code/p0", REASON, again=again, busy=busy)


def test_a_long_block_says_now_and_then_how_far_it_is(hear, capsys):
    commentary, event = hear()
    with commentary:
        for run in range(1, 13):
            event(10 * run, Done(run))
    assert capsys.readouterr().out.splitlines() == [
        f"420 s left: {BLOCK}: run 6 of 48",
        f"360 s left: {BLOCK}: run 12 of 48",
    ]
    event(500, Done(20))  # a block that has ended
    assert capsys.readouterr().out == ""


def test_the_first_disturbance_is_said_at_once_and_later_ones_with_the_next_line(hear, capsys):
    commentary, event = hear()
    with commentary:
        event(10, Done(1))
        event(20, rejected())
        event(30, rejected())
        event(85, rejected(again=False))
    assert capsys.readouterr().out.splitlines() == [
        BUSY,
        f"940 s left: {BLOCK}: run 2 of 48, 1 attempt disturbed:"
        f" g8/code/p0 was disturbed ({REASON}), measured again",
        # Attempts that failed make the rest longer.
        f"3995 s left: {BLOCK}: run 2 of 48, 3 attempts disturbed:"
        f" g8/code/p0 was disturbed ({REASON}), {ONCE_MORE}",
    ]


def test_stop_other_programs_is_said_once_for_each_start_of_the_workflow(hear, capsys, tmp_path):
    plan = tmp_path / "plan.json"
    plan.touch()

    def warnings():
        for _ in range(2):
            commentary, event = hear()
            with commentary:
                event(1, rejected(busy=False))
                event(2, rejected())
        return capsys.readouterr().out.count(BUSY)

    assert [warnings(), warnings()] == [1, 0]
    os.utime(tmp_path / "logs/busy", (0, 0))  # the workflow has started since
    assert warnings() == 1


@pytest.mark.parametrize(
    ("last_chance", "fate"),
    [(False, ONCE_MORE), (True, KEPT_OUT)],
)
def test_the_end_of_a_block_names_what_was_disturbed_to_the_last_and_what_follows(
    hear, last_chance, fate
):
    commentary, _ = hear(last_chance=last_chance)
    runs = [
        {"run": f"{BLOCK}/{run}", "measured_again": again, "taken_away": why}
        for run, again, why in [("alone/p/p0", 0, None), ("g4/p/p0", 1, None), ("g8/p/p0", 2, "x")]
    ]
    assert commentary.end(runs) == (
        f"; 2 of 3 runs measured again; 1 disturbed at every attempt (g8/p/p0), {fate}"
    )
    assert commentary.end(runs[:1]) == ""
    # The published protocol watches nothing.
    assert commentary.end([{"run": f"{BLOCK}/alone/p/p0"}]) == ""
