"""Archives of sources are unpacked into their folder and nowhere else."""

import io
import tarfile

import pytest

from specmoe.engine.source import PYPI_PART, unpack
from specmoe.errors import EngineError


def archive(path, name, content=b"text"):
    """Write an archive of one file."""
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return path


def test_files_of_the_part_are_unpacked(tmp_path):
    unpack(archive(tmp_path / "a.tar.gz", f"x{PYPI_PART}main.cpp"), tmp_path, PYPI_PART)
    assert (tmp_path / f"x{PYPI_PART}main.cpp").read_bytes() == b"text"


@pytest.mark.parametrize(
    "name", [f"../x{PYPI_PART}a", f"/x{PYPI_PART}a", f"x{PYPI_PART}../../../../a"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(EngineError, match=r"a\.tar\.gz holds .* which leads out of it"):
        unpack(archive(tmp_path / "a.tar.gz", name), inside, PYPI_PART)
    assert list(inside.iterdir()) == []
