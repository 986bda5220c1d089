"""The published rows become ours: each number where it belongs, the lost counters recovered."""

from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import httpx
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specmoe.errors import DownloadError, SchemaError
from specmoe.runs.schema import check_rows
from specmoe.study.study_rows import fetch_study_rows, import_study_rows, recover, rows_of_csv

# A run with speculation, 257 tokens in 4.000 s, 250 rounds of 8, 6 accepted; and one without, of
# suite F.
LINE, BENCH = pd.read_csv(
    Path(__file__).with_name("runs.csv"), keep_default_na=False, na_values=[""]
).to_dict("records")


def rows_of(*lines):
    """Return the rows of a CSV of these lines."""
    return rows_of_csv(StringIO(pd.DataFrame(lines).to_csv(index=False)))


def test_the_counters_of_a_run_with_a_draft_are_recovered():
    [row] = rows_of(LINE)
    check_rows([row])
    unknown = ["tokens", "decode_failures", "target_sha256", "draft_sha256", "seed", "load_average"]
    known = {"run": "moe_speculative/moe_q4/draft_2b/g8/r1/g8/code", "suite": "moe_speculative"}
    known |= {"method": "draft-simple", "prompt": "code", "decode_ms": 4000.0}
    known |= {"generated": 257, "rounds": 250, "drafted": 2000, "accepted": 6}
    known |= dict.fromkeys(unknown)
    assert {name: row[name] for name in known} == known
    assert row["started_at"].isoformat() == "2026-03-14T22:24:31.757445+00:00"


def test_a_run_of_llama_bench_has_its_time_from_its_time_per_token():
    [row] = rows_of(BENCH)
    assert row["run"] == "prompt_length/compared/r1/baseline/passage-512"
    assert (row["generated"], row["decode_ms"], row["prompt_ms"]) == (256, 5120.0, 340.5)
    assert row["rounds"] is row["drafted"] is row["accepted"] is None


def test_a_run_of_suite_f_is_linked_to_the_one_without_a_draft_of_its_length_and_repeat():
    sweep = LINE | {"job_id": "F_sd_np512_r1", "prompt_key": "sweep", "n_prompt": 512}
    rows = rows_of(sweep, BENCH, BENCH | {"job_id": "F_x", "repeat": 0})
    assert rows[0]["baseline"] == rows[1]["run"]
    assert rows[0]["common_prefix"] is None
    assert rows_of(LINE, BENCH)[0]["baseline"] is None


# 256 tokens of 248 rounds in 3.840 s, or 257 of 249 in 3.855 s; 7 accepted.
AMBIGUOUS = {"tokens_per_sec": 66.668, "draft_acceptance_rate": 0.00176, "eval_ms_per_token": 15.0}
AMBIGUOUS |= {"draft_len": 16, "n_predict": 255}


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({"draft_acceptance_rate": 0.00305}, 0),  # of no whole numbers
        ({"tokens_per_sec": 64.5}, 0),  # of another time
        ({"eval_ms_per_token": 15.5647}, 0),  # of no whole number of milliseconds
        ({"n_predict": 200}, 0),  # 257 tokens are more than one round beyond
        (AMBIGUOUS, 2),
    ],
)
def test_impossible_and_ambiguous_numbers_are_refused(changes, fits):
    with pytest.raises(SchemaError, match=f"job 'B_.*fit {fits} sets"):
        rows_of(LINE | changes)


@given(
    gamma=st.integers(1, 32),
    rounds=st.integers(1, 500),
    share=st.floats(0, 1),
    over=st.integers(0, 32),
    ms_per_token=st.floats(1, 200),
)
def test_counters_are_recovered_from_the_printed_numbers(gamma, rounds, share, over, ms_per_token):
    accepted = round(share * gamma * rounds)
    generated = accepted + rounds + 1
    n_predict = generated - 1 - min(over, gamma)
    assume(n_predict > 0)
    exact_ms = ms_per_token * generated
    decode_ms = round(exact_ms)
    found = recover(
        rate=round(generated / exact_ms * 1000, 3),
        ms_per_token=decode_ms / generated,
        acceptance_rate=round(100 * accepted / (gamma * rounds), 3) / 100,
        gamma=gamma,
        n_predict=n_predict,
    )
    counters = {"generated": generated, "decode_ms": decode_ms, "rounds": rounds}
    assert counters | {"drafted": gamma * rounds, "accepted": accepted} in found


def test_rows_that_were_edited_after_the_download_are_refused(tmp_path):
    (tmp_path / "runs.csv").write_text("job_id\n")
    campaign = SimpleNamespace(config=None, places=SimpleNamespace(data=tmp_path))
    with pytest.raises(SchemaError, match=r"is not the study's runs\.csv: its SHA-256 is"):
        import_study_rows(campaign, tmp_path / "runs.csv", {})
    assert not (tmp_path / "runs.parquet").exists()


@pytest.mark.parametrize(
    ("source", "status", "there"),
    [("mine", 404, True), ("absent.csv", 200, False), (None, 200, True), (None, 404, False)],
)
def test_rows_are_downloaded_or_copied_and_an_absent_file_is_named(
    source, status, there, monkeypatch, tmp_path
):
    def get(address, *, follow_redirects, timeout):
        assert follow_redirects and timeout
        return httpx.Response(status, content=b"rows", request=httpx.Request("GET", address))

    monkeypatch.setattr(httpx, "get", get)
    (tmp_path / "mine").write_bytes(b"rows")
    campaign = SimpleNamespace(config=SimpleNamespace(study_rows=source and tmp_path / source))
    refused = pytest.raises(DownloadError, match=r"cannot be read \(.+\); .*set study_rows")
    with nullcontext() if there else refused:
        fetch_study_rows(campaign, tmp_path / "out")
    assert [one.read_bytes() for one in tmp_path.glob("out")] == [b"rows"] * there
