"""An engine is installed with the shared libraries that its programs load from their folder."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specmoe.config.backend import Backend
from specmoe.config.engines import PathEngine
from specmoe.engine import build
from specmoe.engine.binaries import BINARIES, install
from specmoe.engine.build import make_engine
from specmoe.files import sha256_of

NAME = "libmade.dylib" if sys.platform == "darwin" else "libmade.so.0.1"
ALIAS = "libalias.dylib" if sys.platform == "darwin" else "libmade.so.0"
ORIGIN = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"


@pytest.fixture
def built(tmp_path) -> Path:
    """A folder of programs that load a library in it by another of its names."""
    folder = tmp_path / "built"
    folder.mkdir()
    (tmp_path / "made.c").write_text("int made(void) { return 42; }\n")
    (tmp_path / "main.c").write_text("int made(void);\nint main(void) { return made() - 42; }\n")
    name = "-install_name,@rpath/" if sys.platform == "darwin" else "-soname,"
    library = ["cc", "-shared", "-fPIC", f"-Wl,{name}{ALIAS}", "-o", NAME, tmp_path / "made.c"]
    subprocess.run(library, cwd=folder, check=True)
    (folder / ALIAS).symlink_to(NAME)
    for program in BINARIES:
        command = ["cc", f"-Wl,-rpath,{ORIGIN}", "-o", program, tmp_path / "main.c", NAME]
        subprocess.run(command, cwd=folder, check=True)
    return folder


def test_programs_run_after_the_folder_they_came_from_is_gone(built, tmp_path):
    (built / "llama-bench").rename(tmp_path / "elsewhere")
    (built / "llama-bench").symlink_to(tmp_path / "elsewhere")
    install(built, tmp_path / "bin")
    assert not (tmp_path / "bin/llama-bench").is_symlink()
    shutil.rmtree(built)
    for program in BINARIES:
        assert subprocess.run([tmp_path / "bin" / program], check=False).returncode == 0
    assert (tmp_path / "bin" / ALIAS).readlink() == Path(NAME)


def test_libraries_of_an_earlier_build_are_gone(built, tmp_path):
    install(built, tmp_path / "bin")
    for library in (ALIAS, NAME):
        (built / library).unlink()
    install(built, tmp_path / "bin")
    assert sorted(file.name for file in (tmp_path / "bin").iterdir()) == sorted(BINARIES)


def test_the_card_of_an_engine_has_the_digests_of_its_libraries(built, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "self_test", lambda *args: None)
    entry = PathEngine(source="path", path=str(built))
    folder = tmp_path / "engine"
    folder.mkdir()
    make_engine(entry, "e-cpu-0", Backend.CPU, folder, tmp_path / "log")
    digests = json.loads((folder / "engine.json").read_text())["binaries_sha256"]
    # An engine may lack llama-speculative, which only protocol `published` needs.
    assert digests == {name: sha256_of(built / name) for name in (*BINARIES, NAME)}
