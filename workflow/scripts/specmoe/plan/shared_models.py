"""Campaigns whose model sets have the same name share the folder of its models.

So a model has one entry in all of them: with another one, each campaign would replace the other's
file and measure again what was measured.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from specmoe.config.block import Block
from specmoe.config.models import AnyModel, Model, SyntheticDraft
from specmoe.config.schema import Config
from specmoe.errors import ConfigError

# The keys of an entry that leave the model's file as it is.
_OF_NO_FILE = {"label", "family", "sha256", "size_bytes", "size_gb"}

Entries = Mapping[str, AnyModel]
"""The entries of a model set, by model."""

_ENTRIES: TypeAdapter[Entries] = TypeAdapter(dict[str, Model])


def check_shared(config: Config, results: Path) -> None:
    """Make sure that no other campaign has measured another model under the name of one of ours.

    `results` is the folder of all campaigns' results. Raises ConfigError.
    """
    model_set = config.campaign.models
    for file in sorted(results.glob("*/campaign.json")):
        other = file.parent
        if other.name == config.campaign.name or not (other / "blocks").is_dir():
            continue
        entries = recorded_entries(file, model_set)
        for model, change in _changes(config, entries, "there", "here").items():
            raise ConfigError(
                f"config: model_sets.{model_set}.{model}: campaign {other.name} ({other}) has"
                f" measured another model of this name ({change}); give the model, or the set in"
                " campaign.models and model_sets, another name"
            )


def recorded_entries(file: Path, model_set: str) -> Entries:
    """Return the entries of a model set that a campaign's campaign.json has; none if it is damaged.

    A campaign that was not measured here has made no model.
    """
    try:
        recorded = json.loads(file.read_bytes())
        if recorded["campaign"]["source"] != "measured":
            return {}
        return _ENTRIES.validate_python(recorded["model_sets"].get(model_set, {}))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def changed_models(config: Config, before: Entries, blocks: Iterable[Block]) -> dict[str, str]:
    """Return the blocks whose models have other entries than before, and what has changed."""
    changes = _changes(config, before, "before", "now")
    reasons = {}
    for block in blocks:
        used = {name for model in block.models for name in _needs(model, config.models)}
        if parts := [f"model {name}: {changes[name]}" for name in changes if name in used]:
            reasons[block.block] = ", ".join(parts)
    return reasons


def _changes(config: Config, others: Entries, there: str, here: str) -> dict[str, str]:
    """Return the needed models with another entry among `others`, and the first change of each.

    `there` and `here` are the words for the other entry's value and for the configuration's.
    """
    changes = {}
    for name in config.needed_models:
        entries = (others.get(name, config.models[name]), config.models[name])
        old, new = (one.model_dump(mode="json", exclude=_OF_NO_FILE) for one in entries)
        key = next((key for key in [*old, *new] if old.get(key) != new.get(key)), None)
        if key == "recipe":
            changes[name] = "another recipe"
        elif key:
            changes[name] = f"{key} {old.get(key)} {there}, {new.get(key)} {here}"
    return changes


def _needs(model: str, models: Entries) -> Iterator[str]:
    """Yield a model and all that it is made from."""
    name: str | None = model
    while name:
        yield name
        entry = models[name]
        name = entry.target if isinstance(entry, SyntheticDraft) else entry.made_from
