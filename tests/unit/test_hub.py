"""A model that cannot be had from the hub is named in one line."""

import hashlib

import pytest

from specmoe import hub
from specmoe.config import HubModel
from specmoe.errors import ModelError

MODEL = HubModel(kind="hub", repository="a/b", revision="main", file="c.gguf")


@pytest.fixture
def downloaded(monkeypatch, tmp_path):
    """Stand in for the hub's client: the file it would have downloaded."""
    path = tmp_path / "c.gguf"
    path.write_bytes(b"weights")
    monkeypatch.setattr(hub, "hf_hub_download", lambda *args, **kwargs: str(path))
    return path


def test_a_file_is_taken_from_the_users_cache(downloaded):
    assert hub.fetch(MODEL) == downloaded


def test_a_file_of_the_right_size_and_digest_is_taken(downloaded):
    digest = hashlib.sha256(b"weights").hexdigest()
    assert hub.fetch(MODEL.model_copy(update={"size_bytes": 7, "sha256": digest})) == downloaded


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size_bytes": 8}, "7 bytes, the config says 8"),
        ({"sha256": "0" * 64}, "the config says 0"),
    ],
)
def test_a_file_that_is_not_the_one_described_is_refused(downloaded, wrong, message):
    with pytest.raises(ModelError, match=f"a/b, revision main, file c.gguf: .*{message}"):
        hub.fetch(MODEL.model_copy(update=wrong))


def test_a_failed_download_is_one_line(monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no network\nand much more")

    monkeypatch.setattr(hub, "hf_hub_download", fail)
    with pytest.raises(ModelError) as caught:
        hub.fetch(MODEL)
    assert str(caught.value) == "a/b, revision main, file c.gguf: not downloaded: no network"
