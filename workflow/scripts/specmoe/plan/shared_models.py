"""Which blocks have models with another entry than they were measured with."""

from collections.abc import Iterable, Iterator

from specmoe.config.block import Block
from specmoe.config.models import SyntheticDraft
from specmoe.config.schema import Config
from specmoe.plan.door import Entries, changes


def changed_models(config: Config, before: Entries, blocks: Iterable[Block]) -> dict[str, str]:
    """Return the blocks whose models have other entries than before, and what has changed."""
    changed = changes(config, before, "before", "now")
    reasons = {}
    for block in blocks:
        used = {name for model in block.models for name in _needs(model, config.models)}
        if parts := [f"model {name}: {changed[name]}" for name in changed if name in used]:
            reasons[block.block] = ", ".join(parts)
    return reasons


def _needs(model: str, models: Entries) -> Iterator[str]:
    """Yield a model and all that it is made from."""
    name: str | None = model
    while name:
        yield name
        entry = models[name]
        name = entry.target if isinstance(entry, SyntheticDraft) else entry.made_from
