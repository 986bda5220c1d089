"""Which campaigns are about the published study, and which about models of one's own.

Claims, questions to the method and numbers of the study are of interest where its models are
measured, in whatever size and by whatever suites, and of none where they are not.
"""

from collections.abc import Iterable

# The targets of `resources/reported/table5.csv`, by the ids that shipped model sets give them.
TARGETS = frozenset({"moe_q4", "moe_q8", "dense_4b", "dense_9b"})

# The source of its cells among `resources/reported/`.
CELLS = "Table 5"


def is_of_study(targets: Iterable[str]) -> bool:
    """Return whether a campaign of these targets is about the study: one of them is the study's."""
    return not TARGETS.isdisjoint(targets)
