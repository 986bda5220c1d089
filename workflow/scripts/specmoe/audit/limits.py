"""What a run needs at least: the time of its passes, and how wide they are.

The audit of a campaign's rows, the ceilings of its cells and the verdicts on claims of others all
use these formulas, each in its own unit of time.
"""


def time_needed(passes: float, drafted: float, token_time: float, draft_time: float) -> float:
    """Return the least time of passes over the target and of drafted tokens.

    No pass is faster than one over a single token. It is in the unit of both times; where that is
    the time of a token, tokens over this are the largest speedup.
    """
    return passes * token_time + drafted * draft_time


def round_width(rounds: float, drafted: float, requests: float = 1) -> float:
    """Return the mean tokens of a round's pass, over which all requests at once are verified."""
    return requests * (1 + drafted / rounds) if rounds else requests
