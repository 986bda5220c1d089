"""Workloads of the hub: the refusal names the command, and what it fetches is verified.

The hub is a stand-in on loopback that answers as the hub does for models; a data set has the
prefix `/datasets` in its addresses. No real data set was fetched with it.
"""

import hashlib
import json
import shlex
import subprocess
import sys

import pytest

from specmoe.config.expand import expand, nothing_said
from specmoe.config.schema import Config
from specmoe.errors import ConfigError

from ...hub_standin import StandIn, environment

LINES = b'{"question_id": 1, "turns": ["one", "two"], "category": "code"}\n'
DIGEST = hashlib.sha256(LINES).hexdigest()


@pytest.fixture
def hub(tmp_path):
    with StandIn(tmp_path / "hub") as standin:
        standin.add("lab/questions", "main", "data/all.jsonl", LINES)
        yield standin


@pytest.fixture
def config(synthetic):
    """Return the synthetic campaign with a suite that sends a data set of the hub."""
    entry = {"kind": "hub", "repository": "lab/questions", "file": "data/all.jsonl"}
    columns = {"prompt": "turns", "id": "question_id"}

    def of_entry(**more):
        synthetic["workloads"] = {"asked": entry | {"columns": columns} | more}
        synthetic["campaign"]["suites"] = ["B"]
        synthetic["suites"]["B"]["workloads"] = ["asked"]
        return Config.model_validate(synthetic)

    return of_entry


@pytest.fixture
def fetch(config, hub, tmp_path, root):
    """Run the command that the refusal of a workload names; returns the ended process."""

    def run(trust="config", **entry):
        with pytest.raises(ConfigError, match=r"workloads\.asked: its file is not here") as refused:
            expand(config(**entry), tmp_path, nothing_said)
        _, script, *options = shlex.split(str(refused.value).partition("it once: ")[2])
        scripts = root / "workflow/scripts"
        assert script == str(tmp_path / "workflow/scripts/fetch_workload.py")
        return subprocess.run(
            [sys.executable, str(scripts / "fetch_workload.py"), *options, "--trust", trust],
            env=environment(hub, tmp_path / "home", PYTHONPATH=str(scripts)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_command_that_the_refusal_names_fetches_the_prompts(fetch, config, hub, tmp_path):
    done = fetch(sha256=DIGEST)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"lab/questions, SHA-256 {DIGEST}\n")
    commit = hub.commit(hub.folder("lab/questions", "main"))
    folder = "/datasets/lab/questions/resolve"
    asked = {request.path for request in hub.requests if request.path.endswith("all.jsonl")}
    assert asked == {f"{folder}/{revision}/data/all.jsonl" for revision in ("main", commit)}
    assert (tmp_path / "results/workloads/asked.jsonl").read_bytes() == LINES
    [prompt] = expand(config(sha256=DIGEST), tmp_path, nothing_said).workloads["asked"].prompts
    assert (prompt.id, prompt.category, prompt.line) == ("1", "code", 1)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"sha256": "0" * 64}, "lab/questions, revision main, file data/all.jsonl: "),
        ({"repository": "lab/nothing"}, "lab/nothing, revision main, file data/all.jsonl: "),
    ],
)
def test_other_bytes_and_a_data_set_that_is_not_there_are_named(fetch, tmp_path, entry, said):
    done = fetch(**entry)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ModelError: {said}")
    assert not (tmp_path / "results/workloads/asked.jsonl").exists()


def test_a_digest_is_recorded_at_first_use(fetch, tmp_path):
    assert fetch("first-use").returncode == 0
    lock = json.loads((tmp_path / "config/models.lock.json").read_text())
    assert lock["datasets/lab/questions/data/all.jsonl@main"]["sha256"] == DIGEST
