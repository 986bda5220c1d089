"""When a run is measured again because its machine was taken away: the section `measurement.gate`.

The limits look at what the machine gave to others, never at a speed.
"""

from pydantic import Field

from specmoe.config.base import Share, Strict


class Gate(Strict):
    """Limits of the rule in `engine.taken_away`, and how often it may have a run measured again."""

    retries: int = Field(default=2, ge=0)
    """most times that a run is measured again; the last one counts, and its row says how many there
    were. A run that was disturbed every time is left out of all estimates with its pair, and
    counted. 0 records the indicators and measures nothing again"""
    # Limits are reasoned, not fitted: a run of whose time a share is taken away is slower by about
    # that share, and half of the audit's tolerance of 10 percent leaves room for the rest.
    steal_share: Share = 0.05
    """a run is measured again if the hypervisor kept more than this share of the CPU time that the
    machine asked for"""
    wait_share: Share = 0.05
    """a run is measured again if one thread of the server waited for a CPU for more than this share
    of the run (Linux)"""
    # Weaker evidence, hence wider: others may have used CPUs that the server did not want.
    others_share: Share = 0.1
    """a run is measured again if other processes used more than this share of all CPUs; asked only
    where the system does not count waiting (macOS)"""
