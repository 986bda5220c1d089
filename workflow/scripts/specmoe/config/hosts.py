"""How many machines share a campaign, and how alike they must be."""

from enum import StrEnum


class Hosts(StrEnum):
    """Which machines may measure the blocks of one campaign."""

    ONE = "one"  # the machine of its first block
    SAME = "same"  # machines of one kind, see `specmoe.engine.machine_id.kind_of`
    ANY = "any"  # the machine is a factor: intervals are over machines
