"""Two campaigns at once, of two users with temporary folders of their own, measure in turn."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from specmoe.runs.schema import read_runs

from ..small_campaign import tiny_campaign

NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that every user may write to, as pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="specmoe-two-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def another_user(*needed: Path) -> int | None:
    """Return the id of another user who can read some files, None if there is none."""
    if os.geteuid() != 0:
        return None
    seen = [["test", "-r", str(path)] for path in (Path(sys.executable), *needed)]
    reads = (subprocess.run(asked, user=NOBODY, check=False).returncode == 0 for asked in seen)
    return NOBODY if all(reads) else None


def test_two_users_with_two_temporary_folders_measure_in_turn(root, engine_bin, open_folder):
    other = another_user(root / "Snakefile", engine_bin / "llama-server")
    started = []
    for name, user in (("first", None), ("second", other)):
        folder = open_folder / name
        (folder / "tmp").mkdir(parents=True)
        config = tiny_campaign(engine_bin)
        config["measurement"]["repeats"] = 3
        (folder / "campaign.yaml").write_text(yaml.safe_dump(config))
        if user:
            for path in (folder, folder / "tmp"):
                os.chown(path, user, user)
        command = [sys.executable, "-m", "snakemake", "runs", "--cores", "1"]
        command += ["--snakefile", str(root / "Snakefile"), "--directory", str(folder)]
        command += ["--configfile", str(folder / "campaign.yaml")]
        own = {"TMPDIR": str(folder / "tmp"), "XDG_CACHE_HOME": str(folder / "tmp")}
        own |= {"HOME": str(folder), "SPECMOE_TESTS_LOCK_FOLDER": str(open_folder)}
        with (folder / "out").open("w") as out:
            started.append(
                subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | own, user=user)
            )
    for process, name in zip(started, ("first", "second"), strict=True):
        assert process.wait() == 0, (open_folder / name / "out").read_text()
    runs = [
        read_runs(open_folder / name / "results/tiny/runs.parquet").assign(folder=name)
        for name in ("first", "second")
    ]
    both = pd.concat(runs).sort_values("started_at")
    ends = both["started_at"] + pd.to_timedelta(both["prompt_ms"] + both["decode_ms"], unit="ms")
    assert len(both) == 2 * 18
    assert (ends.shift().isna() | (both["started_at"] >= ends.shift())).all()
