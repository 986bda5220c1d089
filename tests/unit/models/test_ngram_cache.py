"""Files of n-grams: what the engine's tool is asked for, and its faults in one line."""

import json
from pathlib import Path

import pytest

from specmoe.config.models import NgramCache
from specmoe.errors import EngineError, ModelError
from specmoe.models.card import save_card
from specmoe.models.derived import make_model, make_ngram_cache
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model

from ...recipes import TINY


def install_tool(folder: Path, script: str) -> Path:
    """Install a stand-in for the tool: a shell script that knows its arguments as $@."""
    tool = folder / "llama-lookup-create"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return folder


def make(folder: Path) -> Path:
    out = folder / "out.ngrams"
    make_ngram_cache(folder, folder / "model.gguf", folder / "text.txt", out, folder / "log")
    return out


# The file to write follows its flag.
WRITES = """while [ "$1" != --lookup-cache-static ]; do shift; done; printf counts > "$2" """


def test_the_file_is_what_the_tool_wrote_and_its_card_names_the_vocabulary(tmp_path):
    made, engine = tmp_path / "counted.ngrams", tmp_path / "engine.json"
    (tmp_path / "bin").mkdir()
    install_tool(tmp_path / "bin", WRITES)
    engine.write_text("{}")
    write_model(tmp_path / "model.gguf", TINY)
    tokenizer = read_card(tmp_path / "model.gguf")
    save_card(tokenizer, tmp_path / "model.json")
    entry = NgramCache(kind="ngram_cache", tokenizer="model", text="text.txt")
    make_model({"counted": entry}, "counted", engine, tmp_path, made, tmp_path / "log")
    assert made.read_text() == "counts"
    assert not list(tmp_path.glob(".*"))
    card = json.loads((tmp_path / "counted.json").read_text())
    assert card["vocabulary_sha256"] == tokenizer.vocabulary_sha256
    assert (card["kind"], card["size_bytes"]) == ("ngram_cache", 6)
    assert (tmp_path / "makers/counted.json").read_text() == "{}"


def test_an_engine_without_the_tool_is_named_with_the_remedy(tmp_path):
    with pytest.raises(EngineError, match=r"no llama-lookup-create in .*: build it with"):
        make(tmp_path)


def test_a_tool_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    install_tool(tmp_path, f"{WRITES}; exit 3")
    (tmp_path / "out.ngrams").write_text("old")
    with pytest.raises(EngineError, match="ended with code 3; see"):
        make(tmp_path)
    assert [file.read_text() for file in tmp_path.glob("*ngrams*")] == ["old"]


@pytest.mark.parametrize("script", ["exit 0", WRITES.replace("counts", "''")])
def test_a_text_without_n_grams_is_refused_although_the_tool_ends_well(tmp_path, script):
    install_tool(tmp_path, script)
    with pytest.raises(ModelError, match=r"text\.txt: fewer than three tokens"):
        make(tmp_path)
    assert not list(tmp_path.glob("*.ngrams"))
