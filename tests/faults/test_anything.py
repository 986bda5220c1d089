"""Whatever stands in a file of a user's, its reader takes it or refuses it by an error of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import ConfigError, SpecmoeError
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model

from ..recipes import TINY
from .damage import EDITS, damaged

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
