"""Model cards for tests."""

from dataclasses import fields
from typing import Any

from specmoe.models.card import ModelCard


def made_card(**facts: Any) -> ModelCard:
    """Return a card with these facts; every other one is zero."""
    return ModelCard(**{field.name: facts.get(field.name, 0) for field in fields(ModelCard)})
