"""Logs of other programs: one file of each format as rows, files that were cut, changed formats."""

import json
import re
import shutil
from pathlib import Path

import pytest

from specmoe.errors import SchemaError
from specmoe.logs import aiperf, ik_spec_bench, llama_cpp, specdec_bench, vllm_bench
from specmoe.logs.read import read_log

EXAMPLES = Path(__file__).parent / "examples"
# What each file says, computed by hand; a column that is not here is null.
ROWS = {
    "answer.json": [
        {"engine": "llama.cpp", "model": "/models/target.gguf", "n_prompt": 5, "prompt_ms": 20.0}
        | {"generated": 41, "decode_ms": 800.0, "tokens_per_second": 50.0}
        | {"drafted": 60, "accepted": 24, "acceptance_rate": 0.4},
    ],
    "answers.jsonl": [
        {"engine": "llama.cpp", "model": "target", "n_prompt": 9, "prompt_ms": 36.0}
        | {"generated": 21, "decode_ms": 1000.0, "tokens_per_second": 20.0},
        {"engine": "llama.cpp", "model": "target", "n_prompt": 9, "prompt_ms": 40.0}
        | {"generated": 21, "decode_ms": 500.0, "tokens_per_second": 40.0}
        | {"drafted": 20, "accepted": 12, "acceptance_rate": 0.6},
    ],
    "server.log": [
        {"engine": "llama.cpp", "n_prompt": 5, "prompt_ms": 8.3, "generated": 51}
        | {"decode_ms": 250.0, "tokens_per_second": 200.0, "drafted": 60, "accepted": 30}
        | {"acceptance_rate": 0.5, "tokens_per_round": 2.5}
        | {"joint": (0.75, 0.5, 0.25), "gamma": 3},
        {"engine": "llama.cpp", "n_prompt": 34, "prompt_ms": 140.0, "generated": 31}
        | {"decode_ms": 300.0, "tokens_per_second": 100.0},
    ],
    "bench.csv": [
        {"engine": "llama.cpp 0c1e57098", "model": "/models/9b.gguf", "size_bytes": 17_900_000_000}
        | {"n_prompt": 0, "generated": 128, "decode_ms": 4000.0, "tokens_per_second": 32.0},
    ],
    "bench.json": [
        {"engine": "llama.cpp 0c1e57098", "model": "/models/9b.gguf", "size_bytes": 17_900_000_000}
        | {"n_prompt": 512, "generated": 128, "decode_ms": 4000.0, "tokens_per_second": 32.0},
    ],
    "spec_bench.jsonl": [
        {"engine": "ik_llama.cpp", "prompt": "code", "method": "mtp", "generated": 120}
        | {"decode_ms": 2000.0, "tokens_per_second": 60.0, "rounds": 40, "drafted": 120}
        | {"accepted": 80, "acceptance_rate": 2 / 3, "tokens_per_round": 3.0}
        | {"gamma": 3, "joint": (0.9, 0.65, 0.45)},
        {"engine": "ik_llama.cpp", "prompt": "story", "generated": 120}
        | {"decode_ms": 4000.0, "tokens_per_second": 30.0},
    ],
    "spec_bench_details.jsonl": [
        {"engine": "ik_llama.cpp", "model": "/models/glm.gguf", "prompt": "code", "n_prompt": 40}
        | {"prompt_ms": 500.0, "generated": 120, "decode_ms": 2000.0, "tokens_per_second": 60.0}
        | {"method": "ngram+mtp", "rounds": 50, "drafted": 100, "accepted": 70}
        | {"acceptance_rate": 0.7, "tokens_per_round": 2.4, "draft_ms": 400.0},
    ],
    "vllm.json": [
        {"engine": "vLLM", "model": "org/target", "concurrency": 1, "n_prompt": 1000}
        | {"generated": 2000, "prompt_ms": 50.0, "tokens_per_second": 80.0, "rounds": 800}
        | {"drafted": 2400, "accepted": 1200, "acceptance_rate": 0.5, "tokens_per_round": 2.5}
        | {"joint": (0.75, 0.5, 0.25), "gamma": 3, "accepted_lengths": (200, 200, 200, 200)},
    ],
    "specdec/acceptance_rate.json": [
        {"generated": 200, "prompt_ms": 50.0, "tokens_per_second": 80.0, "rounds": 100}
        | {"accepted": 120, "tokens_per_round": 2.2, "joint": (0.6, 0.3, 0.3)}
        | {"accepted_lengths": (40, 30, 0, 30)},
    ],
    "specdec/timing.json": [{"generated": 200, "prompt_ms": 50.0, "tokens_per_second": 80.0}],
    "profile_export_aiperf.json": [
        {"n_prompt": 100, "generated": 200, "prompt_ms": 50.0, "tokens_per_second": 80.0}
        | {"rounds": 11, "drafted": 44, "accepted": 20, "acceptance_rate": 20 / 44}
        | {"tokens_per_round": 31 / 11, "joint": (9 / 11, 6 / 11, 4 / 11, 1 / 11)}
        | {"accepted_lengths": (2, 3, 2, 3, 1)},
    ],
}
# A file of each format, and the fields that it must have.
REQUIRED = {
    "answer.json": llama_cpp.ANSWER_FIELDS,
    "bench.json": llama_cpp.BENCH_FIELDS,
    "spec_bench.jsonl": ik_spec_bench.COMPACT,
    "spec_bench_details.jsonl": ik_spec_bench.DETAILED,
    "vllm.json": vllm_bench.FIELDS,
    "specdec/acceptance_rate.json": specdec_bench.ACCEPTANCE,
    "specdec/timing.json": specdec_bench.TIMING,
}


def said(row):
    found = {name: value for name, value in row.cells().items() if value is not None}
    del found["format"], found["place"]
    return found


def refused(file, content=None):
    """Return the line by which a file is refused, with a content that it is given before."""
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SchemaError) as raised:
        read_log(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", ROWS)
def test_a_file_of_each_format_gives_its_rows_with_null_for_what_it_lacks(name):
    rows = read_log(EXAMPLES / name)
    for row, expected in zip(rows, ROWS[name], strict=True):
        assert said(row).keys() == expected.keys()
        for column, value in expected.items():
            assert getattr(row, column) == pytest.approx(value), column
        assert row.place.startswith(str(EXAMPLES / name))


def test_every_example_is_tested():
    assert {str(file.relative_to(EXAMPLES)) for file in EXAMPLES.rglob("*.*")} == ROWS.keys()


@pytest.mark.parametrize("name", ROWS)
def test_a_file_that_was_cut_gives_its_whole_rows_or_one_line(name, tmp_path):
    whole, rows = (EXAMPLES / name).read_text(), read_log(EXAMPLES / name)
    file = tmp_path / Path(name).name
    refused = 0
    for length in range(1, len(whole) - 2, 5):
        file.write_text(whole[:length])
        try:
            found = read_log(file)
        except SchemaError as error:
            refused += 1
            assert str(file) in str(error)
            assert "\n" not in str(error)
        else:
            # Lines are rows by themselves; of the last request of a log, lines may be lacking.
            assert len(found) <= len(rows)
            assert all(said(one) == said(row) for one, row in zip(found[:-1], rows, strict=False))
    assert refused > len(whole) / 20


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (name, field.path)
        for name, declared in REQUIRED.items()
        for field in declared
        if field.required
    ],
)
def test_a_field_that_is_gone_is_named(name, path, tmp_path):
    text = (EXAMPLES / name).read_text()
    given = json.loads(text.splitlines()[0] if name.endswith("jsonl") else text)
    entry = given[0] if isinstance(given, list) else given
    *parents, last = path.split(".")
    for key in parents:
        entry = entry[key]
    del entry[last]
    line = refused(tmp_path / Path(name).name, json.dumps(given))
    assert path.split(".")[0] in line
    assert "format" in line


@pytest.mark.parametrize(
    ("name", "before", "after", "fault"),
    [
        ("answer.json", '"predicted_ms": 800.0', '"predicted_ms": "fast"', "timings.predicted_ms"),
        ("answer.json", '"predicted_ms": 800.0', '"predicted_ms": NaN', "timings.predicted_ms"),
        ("answer.json", '"predicted_ms": 800.0', '"predicted_ms": -1', "timings.predicted_ms"),
        ("vllm.json", "[0.75, 0.5, 0.25]", "[75, 50, 25]", "are no shares"),
        ("vllm.json", "[0.75, 0.5, 0.25]", '{"0": 0.75}', "are no shares"),
        ("specdec/acceptance_rate.json", '"4": 30}', '"long": 30}', "Acceptance_Length_Histogram"),
        ("specdec/acceptance_rate.json", '"1": 40', '"0": 40', "Acceptance_Length_Histogram"),
        ("profile_export_aiperf.json", '"unit": "ms"', '"unit": "sec"', "'sec', not 'ms'"),
        ("profile_export_aiperf.json", '{"0": 2', '{"-1": 2', "acceptance_histogram"),
        ("spec_bench.jsonl", '"stages":[{', '"steps":[{', "stages"),
        ("bench.csv", '"32.000000"', '"32.0",', "cells, and the header"),
        ("bench.csv", "avg_ns", "avg_us", "avg_ns"),
        ("server.log", "ms /    51 tokens", "ms", "lacks generated"),
    ],
)
def test_a_format_that_has_changed_ends_in_one_line_that_names_the_field(
    name, before, after, fault, tmp_path
):
    text = (EXAMPLES / name).read_text()
    assert before in text
    assert fault in refused(tmp_path / Path(name).name, text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "its format is not known"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"hello", "its format is not known"),
        (b"{}", "no known format has its fields"),
        (b"[]", "it has no generation"),
        (b"[1, 2]", "entry 1: it is no object"),
        (b"[" * 100_000, "it is no whole JSON"),
        (b"a,b\n1,2\n", "no known format has its fields (a, b)"),
    ],
)
def test_what_is_no_log_is_refused(content, fault, tmp_path):
    assert fault in refused(tmp_path / "some.txt", content)


def test_times_of_specdec_bench_are_those_of_the_file_beside_its_acceptance(tmp_path):
    shutil.copytree(EXAMPLES / "specdec", tmp_path, dirs_exist_ok=True)
    acceptance, timing = tmp_path / "acceptance_rate.json", tmp_path / "timing.json"
    for text, fault in [("[]", "0 entries, and acceptance_rate.json 1"), ("[{", "file cut")]:
        timing.write_text(text)
        with pytest.raises(SchemaError, match=re.escape(fault)):
            read_log(acceptance)
    timing.unlink()
    [row] = read_log(acceptance)
    assert (row.tokens_per_second, row.tokens_per_round) == (None, 2.2)


def test_a_log_of_two_servers_has_the_requests_of_both(tmp_path):
    text = (EXAMPLES / "server.log").read_text()
    file = tmp_path / "server.log"
    file.write_text(text * 2)
    once, twice = read_log(EXAMPLES / "server.log"), read_log(file)
    assert [said(row) for row in twice] == [said(row) for row in once] * 2


def test_an_older_log_has_no_mean_length(tmp_path):
    file = tmp_path / "server.log"
    text = (EXAMPLES / "server.log").read_text()
    text = text.replace("draft acceptance =", "draft acceptance rate =")
    file.write_text(text.replace(", mean len =  2.50", ""))
    first = read_log(file)[0]
    assert (first.acceptance_rate, first.tokens_per_round) == (0.5, None)
    assert first.format == llama_cpp.LOG.name


def test_an_export_of_aiperf_without_a_draft_has_its_speed_alone(tmp_path):
    given = json.loads((EXAMPLES / "profile_export_aiperf.json").read_text())
    file = tmp_path / "export.json"
    given = {key: given[key] for key in ("aiperf_version", "output_token_throughput_per_user")}
    file.write_text(json.dumps(given))
    [row] = read_log(file)
    assert said(row) == {"tokens_per_second": 80.0}
    assert not row.speculates
    none = f"read in {aiperf.FORMAT.version}: it has none"
    assert none in refused(file, json.dumps({"aiperf_version": "2"}))
