"""Noise that is estimated: of sessions, of blocks, and of predictions."""

from specmoe.analysis.intervals import Session
from specmoe.config.schema import Statistics

SESSION = Session(0.05, 0.03)
"""The prior of sessions, from pairs of shipped campaigns."""


def session_of(statistics: Statistics) -> Session:
    """Return how far sessions are apart: as the configuration says, else as estimated.

    The part of each setting's own is in the proportion of the prior.
    """
    if statistics.session_sd is None:
        return SESSION
    return Session(statistics.session_sd, statistics.session_sd * SESSION.own / SESSION.common)
