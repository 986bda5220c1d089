"""Whatever stands in a file of a user's, its reader takes it or refuses it by an error of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import os
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import ConfigError, SpecmoeError
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model

from ..recipes import TINY

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


class Edits(NamedTuple):
    """What happens to a file: pieces that overwrite its bytes, and whether its end is lost."""

    pieces: list[tuple[float, bytes]]  # each with its place, as a share of the length
    kept: float  # share of the length

    def of(self, sound: bytes, most_at: int | None = None) -> bytes:
        """Return the damaged bytes; only the first `most_at` of them are overwritten or cut."""
        value, length = bytearray(sound), most_at or len(sound)
        for place, piece in self.pieces:
            at = int(place * (length - 1))
            value[at : at + len(piece)] = piece
        if self.kept < 1:
            del value[int(self.kept * length) :]
        return bytes(value)


_SHARE = st.floats(0, 1)
_PIECE = st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8))
EDITS = st.builds(
    Edits,
    pieces=st.lists(st.tuples(_SHARE, _PIECE), max_size=8),
    kept=st.one_of(st.just(1.0), st.just(1.0), _SHARE),
)


many = settings(
    max_examples=int(os.environ.get("SPECMOE_EXAMPLES", "100")),
    suppress_health_check=list(HealthCheck),
)


def refused_in_one_line(read, expected=SpecmoeError):
    """Call a reader; an error must be one of ours, in one line."""
    try:
        return read()
    except expected as error:
        assert "\n" not in str(error)
        return None


@pytest.fixture(scope="module")
def folder(module_folder):
    return module_folder


@pytest.fixture(scope="module")
def sound_model(folder):
    write_model(folder / "sound.gguf", TINY)
    return folder / "sound.gguf"


@many
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


@many
@given(edits=EDITS, most_at=st.sampled_from([64, 1024, 8192]))
def test_a_model_is_read_or_refused(folder, sound_model, edits, most_at):
    file = folder / "model.gguf"
    file.write_bytes(edits.of(sound_model.read_bytes(), most_at))
    refused_in_one_line(lambda: read_card(file))
