"""Which campaigns are about the published study.

A campaign that measures the study's models, in any size and by any suites, reports its claims and
numbers and the questions to its method. A campaign on other models does not.
"""

from collections.abc import Iterable

# The targets of `resources/reported/table5.csv`, by the ids that shipped model sets give them.
TARGETS = frozenset({"moe_q4", "moe_q8", "dense_4b", "dense_9b"})

# What the names of the families of its networks begin with in config/models.yaml.
FAMILIES = "qwen3.5-"

# The source of its cells among `resources/reported/`.
CELLS = "Table 5"


def is_family_of_study(family: str | None) -> bool:
    """Return whether a model's family is one of the study's networks, in any weights."""
    return str(family).startswith(FAMILIES)


def is_of_study(targets: Iterable[str]) -> bool:
    """Return whether one of a campaign's targets is a target of the study."""
    return not TARGETS.isdisjoint(targets)
