"""The check of a model's weights by the real engine."""

import pytest

from specmoe.engine.checks import check_tensors
from specmoe.errors import MeasurementError, ModelError


@pytest.fixture
def check(engine_bin, tmp_path):
    """Check a model's weights."""

    def run(model):
        check_tensors(engine_bin / "llama-server", model, tmp_path / "check.log", 60, {})

    return run


def test_sound_weights_pass(check, family):
    check(family["draft"])


def test_weights_that_are_no_numbers_are_refused(check, family, tmp_path):
    broken = bytearray(family["draft"].read_bytes())
    broken[-4096:] = b"\xff" * 4096
    model = tmp_path / "broken.gguf"
    model.write_bytes(broken)
    with pytest.raises(ModelError, match=r"weights of its tensor \S+ are NaN or infinite"):
        check(model)


def test_a_model_that_the_engine_cannot_load_is_told_by_its_log(check, family, tmp_path):
    model = tmp_path / "cut.gguf"
    model.write_bytes(family["draft"].read_bytes()[:-4096])
    with pytest.raises(MeasurementError, match="llama-server ended while loading"):
        check(model)
