"""Models are linked under one name, whole or split, and found by the engine."""

import os
import re
from pathlib import Path

import pytest

from specmoe.errors import ConfigError, DamagedFileError, ModelError
from specmoe.files import (
    at_home,
    engine_path,
    files_of_model,
    link,
    named_if_damaged,
    parts_of,
    read_record,
    read_text,
)


@pytest.fixture
def user_files(tmp_path):
    """Write files whose content is their name."""

    def write(*names: str) -> list[Path]:
        files = [tmp_path / "user" / name for name in names]
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(file.name)
        return files

    return write


@pytest.fixture
def out(tmp_path):
    (tmp_path / "models").mkdir()
    return tmp_path / "models" / "draft_0.8b.gguf"


def test_a_text_of_windows_is_read_as_any_other(tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_bytes("\ufeffone\r\ntwo".encode())
    assert read_text(file) == "one\ntwo"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda file: file.write_bytes(b"caf\xe9"), ": no text in UTF-8 (byte 3); save it so"),
        (lambda file: file.write_text("a", "utf-16"), ": no text in UTF-8 (byte 0); save it so"),
        (os.mkfifo, "; correct its path, or call from its folder"),
        (
            lambda file: (file.touch(), os.truncate(file, 10**10)),
            ": a text of 10.0 GB; give one of 1.0 GB at most",
        ),
    ],
)
def test_what_is_no_text_that_the_memory_holds_is_refused_by_its_name(tmp_path, make, said):
    make(file := tmp_path / "prompt.txt")
    with pytest.raises(ConfigError, match=re.escape(f"{file}{said}")):
        read_text(file)


SPLIT = parts_of("x-00001-of-00003.gguf")


@pytest.mark.parametrize("name", ["x.gguf", "x-00001-of-00001.gguf"])
def test_a_whole_model_is_linked_and_is_its_own_engine_path(
    user_files, out, name, tmp_path, monkeypatch
):
    [file] = user_files(name)
    monkeypatch.chdir(tmp_path)
    link(file.relative_to(tmp_path), out)
    assert out.read_text() == name
    assert engine_path(out) == out
    assert engine_path(file) == file


def test_a_split_model_is_linked_part_by_part_and_so_is_its_link(user_files, out):
    first, *_ = user_files(*SPLIT)
    link(first, out)
    links = files_of_model(out)
    assert [path.name for path in links] == parts_of("draft_0.8b-00001-of-00003.gguf")
    assert [path.read_text() for path in links] == SPLIT
    assert out.read_text() == SPLIT[0]
    assert engine_path(out) == links[0]
    link(out, out.with_name("again.gguf"))
    assert [path.read_text() for path in files_of_model(out.with_name("again.gguf"))] == SPLIT


@pytest.mark.parametrize("missing", range(3))
def test_a_missing_file_or_part_is_named_and_nothing_is_linked(user_files, out, missing):
    first, *_ = files = user_files(*SPLIT)
    files[missing].unlink()
    said = f"no model file .*{SPLIT[missing]}; the model has 3 parts"
    with pytest.raises(ModelError, match=said):
        link(first, out)
    with pytest.raises(ModelError, match=r"no model file .*x\.gguf; correct its path"):
        link(out.with_name("x.gguf"), out)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("now", [["y.gguf"], parts_of("y-00001-of-00002.gguf")])
def test_a_model_in_place_of_a_split_one_leaves_none_of_its_links(user_files, out, now):
    link(user_files(*SPLIT)[0], out)
    other = out.with_name("draft_0.8b-mtp-00001-of-00003.gguf")
    other.symlink_to("elsewhere")
    link(user_files(*now)[0], out)
    assert set(out.parent.iterdir()) == {out, other, *files_of_model(out)}


@pytest.mark.parametrize("text", ["", "[" * 100_000, "\x00\x00"])
def test_what_is_no_json_is_named_with_the_way_out(tmp_path, text):
    path = tmp_path / "r0.json"
    path.write_text(text)
    with pytest.raises(DamagedFileError) as caught:
        read_record(path)
    fault = re.escape(f"{path} is damaged: it is no JSON (")
    assert re.fullmatch(rf"{fault}.+\); delete it and run snakemake again", str(caught.value))


def test_the_file_of_other_contents_is_named_in_one_short_line(tmp_path):
    with pytest.raises(DamagedFileError) as caught, named_if_damaged(tmp_path / "r0.json"):
        raise ValueError("first\nsecond " + "x" * 1000)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/r0.json is damaged: it is not what the workflow wrote (Va")
    assert "first second" in said
    assert "\n" not in said
    assert len(said) < 500


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("/home/me/a.gguf", "~/a.gguf"),
        ("--model=/home/me", "--model=~"),
        ("/opt/bin:/home/me/bin", "/opt/bin:~/bin"),
        ("/home/mei/a.gguf", "/home/mei/a.gguf"),
    ],
)
def test_what_is_recorded_names_nobodys_home_folder(text, recorded, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert at_home(text) == recorded
