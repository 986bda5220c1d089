"""Files of n-grams: what the engine's tool is asked for, and its faults in one line."""

from pathlib import Path

import pytest

from specmoe.errors import EngineError, ModelError
from specmoe.models.derived import describe_ngram_cache, make_ngram_cache

from ..made_card import made_card


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
    install_tool(tmp_path, WRITES)
    made = make(tmp_path)
    assert made.read_text() == "counts"
    assert not list(tmp_path.glob(".*"))
    card = describe_ngram_cache(made, made_card(vocabulary_sha256="ab"))
    assert card["vocabulary_sha256"] == "ab"
    assert (card["kind"], card["size_bytes"]) == ("ngram_cache", 6)


def test_an_engine_without_the_tool_is_named_with_the_remedy(tmp_path):
    with pytest.raises(EngineError, match=r"no llama-lookup-create in .*: build it with"):
        make(tmp_path)


def test_a_tool_that_fails_leaves_no_file(tmp_path):
    install_tool(tmp_path, f"{WRITES}; exit 3")
    with pytest.raises(EngineError, match="ended with code 3; see"):
        make(tmp_path)
    assert not list(tmp_path.glob("*.ngrams"))


@pytest.mark.parametrize("script", ["exit 0", WRITES.replace("counts", "''")])
def test_a_text_without_n_grams_is_refused_although_the_tool_ends_well(tmp_path, script):
    install_tool(tmp_path, script)
    with pytest.raises(ModelError, match=r"text\.txt: fewer than three tokens"):
        make(tmp_path)
    assert not list(tmp_path.glob("*.ngrams"))
