"""What a job receives is read back as it was written, or refused in one line."""

import pytest

from specmoe.config.base import parse
from specmoe.config.synthetic_recipe import Recipe
from specmoe.errors import ConfigError

from ...recipes import SMALL


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "Recipe: top level: Invalid JSON"),
        (SMALL.to_json().replace('"kv_heads"', '"kv_head"'), "Recipe: kv_heads: Field required"),
        (SMALL.to_json().replace('"layers": 4', '"layers": 3'), "Recipe: top level: layers must"),
    ],
)
def test_a_fault_is_one_line_that_names_its_place(text, fault):
    with pytest.raises(ConfigError) as caught:
        parse(Recipe, text)
    assert str(caught.value).startswith(fault)
    assert "\n" not in str(caught.value)
