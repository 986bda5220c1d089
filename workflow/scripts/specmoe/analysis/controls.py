"""Controls: cells whose outcome is known beforehand, as they are measured to check a campaign.

What a control gives speaks of the campaign and of no draft that one would use.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

import pandas as pd


class Control(StrEnum):
    """What makes a cell a control, if anything."""

    ITSELF = "itself"
    UNRELATED = "unrelated"
    NONE = ""


def with_controls(
    cells: pd.DataFrame, unrelated: Collection[str], digests: Mapping[str, str | None]
) -> pd.DataFrame:
    """Return cells (columns target and draft) with a column `control`, a `Control`'s value.

    `unrelated` are the drafts that know nothing of any target, `digests` the models' by id: a file
    under another name is the same model. Cells without rows stay as they are.
    """
    if cells.empty:
        return cells
    kinds = [
        _kind(target, draft, unrelated, digests)
        for target, draft in cells[["target", "draft"]].itertuples(index=False)
    ]
    return cells.assign(control=[kind.value for kind in kinds])


def digests_of(cards: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    """Return the models' digests by id; null where a card has none."""
    return {model: card["sha256"] for model, card in cards.items()}


def _kind(
    target: str, draft: str, unrelated: Collection[str], digests: Mapping[str, str | None]
) -> Control:
    digest = digests.get(draft)
    if draft == target or (digest is not None and digest == digests.get(target)):
        return Control.ITSELF
    return Control.UNRELATED if draft in unrelated else Control.NONE
