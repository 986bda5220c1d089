"""Models from the hub: downloaded, resumed, verified, or refused in one line.

The verb is run as it is, against a stand-in of the hub; only waiting is left out.
"""

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmoe.campaign.gate import load_campaign
from specmoe.errors import TOO_SLOW
from specmoe.files import seen_of_model
from specmoe.files import sha256_of as digest

from ...conftest import ROOT, merge
from ...hub_standin import Fault, StandIn, environment

SCRIPTS = ROOT / "workflow/scripts"
FILE = "a/b/c.gguf"
PLACE = "a/b, revision main, file c.gguf"
COMMIT = "0123456789abcdef" * 2 + "01234567"
# What is downloaded is not read here, so it need not be a model.
SMALL = b"model" * 20_000
SHA256 = hashlib.sha256(SMALL).hexdigest()
PARTS = {f"c-0000{part}-of-00003.gguf": SMALL + bytes([part]) for part in (1, 2, 3)}
FIRST, SECOND, THIRD = PARTS
# Runs the verb without the pauses between attempts.
RUN = (
    "import runpy, sys, time; time.sleep = lambda seconds: None;"
    "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.fixture
def hub(tmp_path):
    with StandIn(tmp_path / "hub") as standin:
        yield standin


@dataclass
class User:
    """A user with a cache, and with a campaign of one model that the verb fetches."""

    folder: Path
    hub: StandIn
    config: dict[str, Any]

    @property
    def out(self) -> Path:
        return self.folder / "results/models/own/m.gguf"

    @property
    def blobs(self) -> Path:
        return self.folder / "home/hub/models--a--b/blobs"

    @property
    def left(self) -> list[str]:
        """The ends of the blobs' names, after their digests."""
        names = sorted(path.name for path in self.blobs.iterdir()) if self.blobs.exists() else []
        return [name[64:] for name in names]

    def run(self, env=None, before="", **entry):
        entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"} | entry
        self.config["model_sets"]["own"] = {"m": entry}
        campaign = load_campaign(self.config, ROOT, self.folder / "results")
        campaign.record()
        self.out.parent.mkdir(parents=True, exist_ok=True)
        words = ["fetch_model", "--campaign", str(campaign.places.file), "--model", "m"]
        return subprocess.run(
            [sys.executable, "-c", before + RUN, str(SCRIPTS / "specmoe"), *words],
            env=environment(self.hub, self.folder / "home", PYTHONPATH=str(SCRIPTS), **(env or {})),
            capture_output=True,
            text=True,
            check=False,
        )

    def fetch(self, **options) -> str:
        """Run the verb and return what it prints; it must succeed."""
        done = self.run(**options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def error(self, **options) -> str:
        """Run the verb and return its last line; it must fail in one line."""
        done = self.run(**options)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert not self.out.exists()
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ModelError: ")
        return last.removeprefix("ModelError: ")


@pytest.fixture
def user(hub, tmp_path, study) -> User:
    suite = study["suites"]["moe_baseline"] | {"targets": ["m"]}
    campaign = {"name": "own", "models": "own", "suites": ["S"], "backend": "cpu"}
    return User(tmp_path, hub, merge(study, {"campaign": campaign, "suites": {"S": suite}}))


@pytest.fixture
def served(hub):
    """The small file, which the hub serves."""
    return hub.add("a/b", "main", "c.gguf", SMALL)


FILLED = {"sha256": SHA256, "zeros": "0" * 64}
FILLED["wrong"] = hashlib.sha256(bytes(255 - byte for byte in SMALL)).hexdigest()
REFUSED = yaml.safe_load(Path(__file__).with_name("refused_by_hub.yaml").read_text())
*_, NO_FILE = REFUSED["no file"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fetched_is_one_line_and_then_fetched_by_the_same_command(
    hub, user, served, name
):
    deed, entry, env, said = REFUSED[name]
    entry = {key: value.format(**FILLED) for key, value in entry.items()}
    if "gated" in deed:
        hub.gated.add("a/b")
    elif deed:
        hub.faults[FILE] = Fault(**deed)
    place = {"repository": "a/b", "revision": "main", "file": "c.gguf"} | entry
    place = "{repository}, revision {revision}, file {file}".format(**place)
    said = said.format(hub=hub.endpoint, **FILLED)
    assert user.error(env=env, **entry) == f"{place}: {said}"
    assert user.left == ([""] if "sha256" in entry and not deed else [])
    if deed:  # what a broken download left is in nobody's way
        hub.faults.clear()
        hub.gated.clear()
        user.fetch()
        assert digest(user.out) == SHA256


def test_a_file_is_downloaded_into_the_users_cache_and_linked(user, served):
    entry = {"sha256": digest(served), "size_bytes": served.stat().st_size}
    assert user.fetch(**entry) == f"{PLACE}: 0.1 MB to download into {user.folder}/home/hub\n"
    assert user.out.resolve() == user.blobs / digest(served)
    assert digest(user.out) == digest(served)
    assert digest(served) in seen_of_model(user.out).read_text()  # it is not hashed again
    assert user.left == [""]
    assert user.fetch().splitlines()[-1] == (
        f"{PLACE}: the config has no sha256; give it {digest(served)}"
    )


def test_a_download_that_never_ends_is_ended(hub, user, served):
    hub.faults[FILE] = Fault(endless=True)
    done = user.run(before="from specmoe import errors; errors.DOWNLOAD_LIMIT_S = 0;")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"DownloadError: {PLACE}: {TOO_SLOW}"


def test_a_missing_part_is_named_before_the_download_and_a_wrong_one_after_it(hub, user):
    for name in (FIRST, SECOND):
        hub.add("a/b", "main", name, PARTS[name])
    assert user.error(file=FIRST) == f"a/b, revision main, file {THIRD}: {NO_FILE}"
    assert user.left == []
    hub.add("a/b", "main", THIRD, PARTS[THIRD])
    hub.faults[f"a/b/{SECOND}"] = Fault(wrong=True)
    assert f"file {SECOND}: damaged" in user.error(file=FIRST)


def test_a_warm_cache_is_enough_offline_and_a_cold_one_is_named(hub, user, served):
    offline = {"HF_HUB_OFFLINE": "1"}
    forbidden = (
        f"{PLACE}: not in the cache {user.folder}/home/hub, and HF_HUB_OFFLINE forbids the"
        " download; unset it"
    )
    assert user.error(env=offline) == forbidden
    assert not hub.requests
    user.fetch()
    assert user.fetch(env=offline, sha256=digest(served)) == ""


def test_a_file_damaged_in_the_cache_is_deleted_with_its_link(hub, user):
    small = hub.add("a/b", COMMIT, "c.gguf", SMALL)
    user.fetch(revision=COMMIT)
    hub.requests.clear()
    user.fetch(revision=COMMIT, sha256=digest(small))
    assert hub.requests == []  # a commit in the cache is what it was
    user.out.unlink()
    (user.blobs / digest(small)).write_bytes(b"rot")
    assert "damaged: SHA-256" in user.error(revision=COMMIT)
    assert user.left == []
    assert not list((user.blobs.parent / "snapshots" / COMMIT).iterdir())
    user.fetch(revision=COMMIT)
