"""Weights that change under a measurement are found."""

import os

import pytest

from specmoe.errors import MeasurementError
from specmoe.files import sha256_of
from specmoe.measure import file_state
from specmoe.measure.file_state import remember, unchanged


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "target.gguf"
    path.write_bytes(b"weights")
    return path


def swap(model, keep_time=False):
    """Put another file of the same size in the model's place."""
    stat = model.stat()
    other = model.with_name("other")
    other.write_bytes(b"WEIGHTS")
    other.replace(model)
    if keep_time:
        os.utime(model, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_file_that_stays_is_measured_and_hashed_once(model, monkeypatch):
    digest = sha256_of(model)
    with unchanged({model: digest}):
        pass
    monkeypatch.setattr(file_state, "sha256_of", lambda path: pytest.fail("hashed again"))
    with unchanged({model: digest}):
        pass


@pytest.mark.parametrize("keep_time", [True, False])
def test_a_file_that_was_swapped_before_is_refused(model, keep_time):
    digest = sha256_of(model)
    remember(model, digest)
    swap(model, keep_time)
    with (
        pytest.raises(MeasurementError, match=r"no longer the file that target\.json describes"),
        unchanged({model: digest}),
    ):
        pass


def test_a_file_that_is_swapped_meanwhile_is_refused(model):
    with (
        pytest.raises(MeasurementError, match="changed while it was measured"),
        unchanged({model: sha256_of(model)}),
    ):
        swap(model, keep_time=True)


@pytest.mark.parametrize("damage", ["copy", "memory"])
def test_a_copy_of_the_same_bytes_or_a_damaged_memory_is_hashed_again(model, damage):
    digest = sha256_of(model)
    remember(model, digest)
    if damage == "copy":
        copy = model.with_name("copy")
        copy.write_bytes(model.read_bytes())
        copy.replace(model)
    else:
        (model.parent / "states/target.json").write_text("{")
    with unchanged({model: digest}):
        pass


def test_all_parts_of_a_split_model_count(tmp_path):
    parts = [tmp_path / f"x-0000{part}-of-00002.gguf" for part in (1, 2)]
    for part in parts:
        part.write_bytes(b"weights")
    link = tmp_path / "target.gguf"
    link.symlink_to(parts[0].name)
    assert len(file_state.state_of(link)) == 2
