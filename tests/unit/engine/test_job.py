"""Measuring jobs: their needs, and a log with their errors."""

import logging
from pathlib import Path

import pytest

from specmoe.config.methods import Method
from specmoe.engine.job import log_of_job
from specmoe.errors import MeasurementError

from ...blocks import ALONE, compared, drafted, job_of


def test_each_arm_of_a_block_has_a_log_and_a_command_line_of_its_own():
    job = job_of(Path("l"), drafts={"draft": Path("d")}, server_log=Path("l/r0.server.log"))
    arms = [ALONE, drafted(8), drafted(8, 0.5)]
    assert [job.log_of(arm) for arm in arms] == [
        Path(f"l/r0.server.{name}.log") for name in ("baseline", "draft.g8", "draft.g8-a0.5")
    ]
    given = {"engine_args": ("--cpu-moe", "--numa", "distribute"), "threads": 3}
    alone, eight, forced = (job.command(compared(**given), arm) for arm in arms)
    assert " ".join(alone).endswith("--threads 3 --cpu-moe --numa distribute")
    assert " --ctx-checkpoints 0 --cache-ram 0 " in " ".join(alone)
    assert eight[: len(alone)] == alone
    assert eight[-2:] == ["--spec-draft-p-min", "0"]
    assert {"--model-draft", "d"}.isdisjoint(alone)
    assert eight[eight.index("--model-draft") + 1] == "d"
    assert eight[eight.index("--spec-draft-n-max") + 1] == "8"
    cache = job.command(compared(), drafted(8, method=Method.NGRAM_CACHE))
    assert cache[cache.index("--lookup-cache-static") + 1] == "d"
    assert forced == [*eight, "--spec-synth-len", "5"]
    words = {"engine_args": ("--gpu-layers", "7", "-ngld", "5")}  # in place of the campaign's
    own = " ".join(job.command(compared(gpu_layers=99), drafted(**words)))
    assert " --flash-attn on --gpu-layers 7 -ngld 5 --spec-type" in own
    assert "99" not in own


def test_a_jobs_log_has_its_runs_and_its_fault(tmp_path):
    log = tmp_path / "block.log"
    with pytest.raises(MeasurementError), log_of_job(log):
        logging.getLogger("specmoe.measure.block").debug("run 1 of 2")
        logging.getLogger("specmoe.hardware.machine").info("waiting")
        raise MeasurementError("short output")
    assert log.read_text() == "run 1 of 2\nMeasurementError: short output\n"
