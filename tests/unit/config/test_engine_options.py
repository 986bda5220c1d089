"""Words for the engine: what is refused."""

import pytest
from pydantic import TypeAdapter, ValidationError

from specmoe.config.block import Arm
from specmoe.config.engines import EngineArgs
from specmoe.config.methods import Method
from specmoe.engine.job import server_command, speculation_flags

READER = TypeAdapter(EngineArgs)


def read(*words):
    return READER.validate_python(list(words))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--host 127.0.0.1", "the protocol decides it"),
        ("-np 4", "a suite's factor `requests` decides it"),
        ("--ctx_size 9", "measurement.context decides it"),
        ("--no-repack -ngl 3", "measurement.gpu_layers decides it"),
        ("-md x", "drafts, methods"),
        ("--threads-draft 2", "drafts, methods"),
        ("-lv 5", "the protocol decides it"),
        ("--THREADS 2", "--THREADS is refused: measurement.threads decides it"),
    ],
)
def test_flags_that_other_keys_decide_are_refused_with_the_key(words, says):
    with pytest.raises(ValidationError, match=says):
        read(*words.split())


def test_other_words_are_the_engines_to_judge_and_numbers_are_words_too():
    words = [
        "--numa",
        "distribute",
        "--prio",
        "-1",
        "-C",
        "3",
        "--no-kv-offload",
        "--no-warmup",
        "--frobnicate",
    ]
    assert read(*words) == words
    assert read("--poll", 0, "--rope-freq-scale", 0.5)[1::2] == ["0", "0.5"]
    with pytest.raises(ValidationError, match="is empty, or cannot be printed"):
        read("")


def test_what_specmoe_sets_itself_is_refused(tmp_path):
    command = server_command(tmp_path, tmp_path, context=1, threads=1, gpu_layers=1)
    for method in Method:
        arm = Arm(4, 0.5, n_match=3, p_min=0.0, method=method)
        command += speculation_flags(arm, tmp_path, 1)
    flags = {word for word in command[1:] if word.startswith("--")} | {"--host"}
    assert len(flags) > 15
    for flag in flags - {"--flash-attn"}:  # which is left out where it is given
        with pytest.raises(ValidationError, match="is refused"):
            read(flag)
