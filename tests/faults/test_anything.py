"""Whatever stands in a configuration, it is loaded or refused by errors of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import os
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import ConfigError

# What a hand, a script or a broken disk may leave where something else belongs.
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([-(2**63) - 1, 2**31, 2**63, 10**30]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["", "{x}", "../../x", "NaN", "a\nb", "\ud800", "汉", "$(touch x)", "%s", "1e999"]
    ),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(0, 9), max_size=2),
    st.builds(lambda: [[[[[]]]]]),
)


@st.composite
def damaged(draw: st.DrawFn, sound: Any) -> Any:
    """Return a copy of what JSON holds with up to three values changed, left out or added."""
    value = deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        value = _damage(draw, value)
    return value


def _damage(draw: st.DrawFn, value: Any) -> Any:
    """Change a value somewhere below, mostly far below."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 19)) == 0:
        return draw(JUNK)
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    deed = draw(st.integers(0, 9))
    if deed == 0:
        del value[key]
    elif deed == 1 and isinstance(value, dict):
        value[draw(st.text(max_size=6))] = draw(JUNK)
    elif deed == 1:
        value.append(deepcopy(value[key]))
    else:
        value[key] = _damage(draw, value[key])
    return value


@settings(
    max_examples=int(os.environ.get("SPECMOE_EXAMPLES", "100")),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_configuration_is_loaded_or_refused(_study, root, data):
    config = data.draw(damaged(_study))
    if not isinstance(config, dict):
        return  # snakemake refuses it
    try:
        loaded = load(config, root)
    except ConfigError as error:
        assert all(line.startswith("config: ") for line in str(error).splitlines())
        return
    if loaded and loaded.measurement.repeats <= 5:
        list_blocks(loaded, gpu=False)
