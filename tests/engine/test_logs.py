"""What the built engine answers and logs is read as other people's logs are."""

import json
import subprocess
from dataclasses import asdict

import pytest

from specmoe.logs.read import read_log

from ..blocks import ALONE, DRAFTED, compared

PROMPT = list(range(1, 20))
GREEDY = {"temperature": 0, "seed": 1}


@pytest.mark.parametrize("side", [ALONE, DRAFTED], ids=lambda side: side.name)
def test_answer_and_log_of_llama_server_have_the_same_counts(serve, side, tmp_path):
    with serve(compared(), side) as server:
        answer = server.complete(PROMPT, n_predict=48, **GREEDY)
        text = server.log_text()
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    (tmp_path / "server.log").write_text(text)
    [answered], [logged] = (read_log(tmp_path / name) for name in ("answer.json", "server.log"))
    for column in ("n_prompt", "generated", "drafted", "accepted"):
        assert getattr(answered, column) == getattr(logged, column)
    for column in ("prompt_ms", "decode_ms", "tokens_per_second"):
        # The log has two decimals.
        assert getattr(answered, column) == pytest.approx(getattr(logged, column), abs=0.006)
    assert answered.speculates == logged.speculates == (side is DRAFTED)
    if side is DRAFTED:
        assert len(logged.joint) == logged.gamma == side.gamma


def test_rows_of_llama_bench_are_the_same_in_every_form(engine_bin, job, tmp_path):
    model = job.command(compared(), ALONE)[2]
    rows = []
    for form in ("csv", "json", "jsonl"):
        command = [str(engine_bin / "llama-bench"), "-m", model, "-p", "8", "-n", "8", "-r", "1"]
        done = subprocess.run([*command, "-o", form], capture_output=True, text=True, check=True)
        (tmp_path / form).write_text(done.stdout)
        [row] = read_log(tmp_path / form)
        rows.append(row)
    for row in rows:
        assert (row.model, row.generated, row.n_prompt) == (model, 8, 0)
        assert row.tokens_per_second == pytest.approx(8000 / row.decode_ms, rel=1e-3)
        assert row.size_bytes == rows[0].size_bytes > 0
        assert not row.speculates
        assert asdict(row)["engine"].startswith("llama.cpp")
