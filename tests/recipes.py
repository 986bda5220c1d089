"""Recipes of small synthetic models that several tests use, and infos of models by hand."""

from dataclasses import fields

from specmoe.config.models import Recipe
from specmoe.models.info import ModelInfo


def varied(recipe: Recipe, **changes: object) -> Recipe:
    """Return a recipe that differs in some keys."""
    return Recipe.model_validate(recipe.model_dump() | changes)


def made_info(**facts: object) -> ModelInfo:
    """Return a model info with these facts; every other one is zero."""
    return ModelInfo(**{field.name: facts.get(field.name, 0) for field in fields(ModelInfo)})


# Wide enough for K-quants; the smallest that a real engine runs in every type.
SMALL = Recipe(
    layers=4,
    hidden=256,
    heads=4,
    kv_heads=2,
    head_size=64,
    ffn=512,
    gdn_value_heads=4,
    gdn_key_heads=2,
    gdn_head_size=64,
    seed=3,
)
# Targets that begin with its layers.
DENSE = varied(SMALL, layers=8)
MOE = varied(DENSE, experts=8, experts_used=2, expert_ffn=256)
# For tests that only write and read files.
TINY = Recipe(
    layers=4,
    hidden=32,
    heads=2,
    kv_heads=1,
    head_size=16,
    ffn=64,
    gdn_value_heads=2,
    gdn_key_heads=1,
    gdn_head_size=16,
)
