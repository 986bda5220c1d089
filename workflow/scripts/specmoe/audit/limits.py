"""Tolerances of the audit: how far a valid run may pass a bound; `limits.yaml` has the reasons."""

from dataclasses import dataclass
from pathlib import Path

from specmoe.yaml_files import read_yaml


@dataclass(frozen=True)
class Limits:
    """The tolerances."""

    time_tolerance: float
    steady_runs: int
    steady_within: float
    longer_context: int  # tokens
    bandwidth_tolerance: float
    cache_bytes: int
    tie_factor: float
    tie_factor_alone: float
    tie_cap_nats: float
    self_acceptance: float
    unrelated_acceptance: float
    least_accepted: float  # tokens a round
    least_rounds: int
    commonest_token: float
    looping_excess: float
    looping_share: float

    def widest_tie(self, moved_nats: float, places: float = float("inf")) -> float:
        """Return the widest gap of a tie, where batches move gaps at so many places by so much."""
        factor = max(self.tie_factor, self.tie_factor_alone / places)
        return min(factor * moved_nats, self.tie_cap_nats)


LIMITS = Limits(**read_yaml(Path(__file__).with_name("limits.yaml")))
