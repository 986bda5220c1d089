"""Models from the hub: downloaded, resumed, verified, or refused in one line.

The script is run as it is, against a stand-in of the hub; only waiting is left out.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from specmoe.files import sha256_of as digest
from specmoe.models.synthetic import write_model

from ...hub_standin import StandIn, environment
from ...processes import eventually
from ...recipes import TINY
from ...splitting import split_model

FILE = "a/b/c.gguf"
PLACE = "a/b, revision main, file c.gguf"
COMMIT = "0123456789abcdef" * 2 + "01234567"
# The client writes pieces of 10 MiB; a broken connection loses a smaller rest.
PIECE = 10 << 20
# Runs a script without the pauses between attempts; what stands before it may change an edge.
RUN = (
    "import runpy, sys, time; time.sleep = lambda seconds: None; exec(sys.argv[1]);"
    "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def small(folder) -> Path:
    write_model(folder / "small.gguf", TINY)
    return folder / "small.gguf"


@pytest.fixture(scope="module")
def large(folder) -> Path:
    write_model(folder / "large.gguf", replace(TINY, hidden=256, ffn=4096))
    assert (folder / "large.gguf").stat().st_size > 2 * PIECE
    return folder / "large.gguf"


@pytest.fixture(scope="module")
def parts(small, folder) -> list[Path]:
    return split_model(small, folder, "c", 3)


@pytest.fixture
def hub(tmp_path):
    with StandIn(tmp_path / "hub") as standin:
        yield standin


@dataclass
class User:
    """A user with a cache and a folder of results, who runs the scripts."""

    folder: Path
    hub: StandIn | str
    scripts: Path

    @property
    def out(self) -> Path:
        return self.folder / "results/m.gguf"

    @property
    def blobs(self) -> Path:
        return self.folder / "home/hub/models--a--b/blobs"

    @property
    def lock(self) -> Path:
        return self.folder / "models.lock.json"

    @property
    def left(self) -> list[str]:
        """The ends of the blobs' names, after their digests."""
        names = sorted(path.name for path in self.blobs.iterdir()) if self.blobs.exists() else []
        return [name[64:] for name in names]

    def start(self, trust="config", edge="", env=None, **entry):
        entry = {"kind": "hub", "repository": "a/b", "file": "c.gguf"} | entry
        self.out.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [
                *(sys.executable, "-c", RUN, edge, str(self.scripts / "fetch_model.py")),
                *("--entry", json.dumps(entry), "--lock", str(self.lock), "--trust", trust),
                *("--plan", str(self.folder / "plan.json"), "--room", "checked"),
                *("--out", str(self.out), "--digests", str(self.out.with_suffix(".sha256"))),
            ],
            env=environment(
                self.hub, self.folder / "home", PYTHONPATH=str(self.scripts), **(env or {})
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fetch(self, **options) -> str:
        """Run the script and return what it prints; it must succeed."""
        process = self.start(**options)
        said, error = process.communicate()
        assert process.returncode == 0, error
        return said

    def fault(self, **options) -> str:
        """Run the script and return its last line; it must fail in one line."""
        process = self.start(**options)
        _, error = process.communicate()
        assert process.returncode == 1
        assert "Traceback" not in error
        assert not self.out.exists()
        last = error.splitlines()[-1]
        assert last.startswith("ModelError: ")
        return last.removeprefix("ModelError: ")


@pytest.fixture
def user(hub, tmp_path, root) -> User:
    return User(tmp_path, hub, root / "workflow/scripts")


@pytest.fixture
def served(hub, small):
    """The small file, which the hub serves."""
    hub.add("a/b", "main", "c.gguf", small)
    return small


@pytest.fixture
def served_large(hub, large):
    """The large file, which the hub serves."""
    hub.add("a/b", "main", "c.gguf", large)
    return large


def test_a_file_is_downloaded_into_the_users_cache_and_linked(user, served):
    entry = {"sha256": digest(served), "size_bytes": served.stat().st_size}
    said = user.fetch(trust="first-use", **entry)
    assert said == f"{PLACE}: 0.1 MB to download into {user.folder}/home/hub\n"
    assert user.out.resolve() == user.blobs / digest(served)
    assert digest(user.out) == digest(served)
    assert user.left == [""]
    assert not user.lock.exists()  # the config has the digest


def test_a_split_model_gets_a_link_and_a_digest_for_each_part(hub, user, parts):
    for part in parts:
        hub.add("a/b", "main", f"BF16/{part.name}", part)
    digests = [digest(part) for part in parts]
    user.fetch(file=f"BF16/{parts[0].name}", sha256=digests)
    assert user.out.readlink() == Path("m-00001-of-00003.gguf")
    links = sorted(user.out.parent.glob("m-*.gguf"))
    assert [digest(link) for link in links] == digests
    # Under the hub's names, in the folder of the commit.
    assert [link.readlink().name for link in links] == [part.name for part in parts]
    # As sha256sum reads them.
    lines = [f"{one}  {link.name}\n" for one, link in zip(digests, links, strict=True)]
    assert user.out.with_suffix(".sha256").read_text() == "".join(lines)


def test_a_file_in_the_cache_needs_no_network_if_the_revision_is_a_commit(hub, user, small):
    hub.add("a/b", COMMIT, "c.gguf", small)
    user.fetch(revision=COMMIT)
    hub.requests.clear()
    user.fetch(revision=COMMIT, sha256=digest(small))
    assert hub.requests == []


def test_a_warm_cache_is_enough_offline_and_a_cold_one_is_named(hub, user, served):
    offline = {"HF_HUB_OFFLINE": "1"}
    forbidden = (
        f"{PLACE}: not in the cache {user.folder}/home/hub, and HF_HUB_OFFLINE forbids the"
        " download; unset it"
    )
    assert user.fault(env=offline) == forbidden
    assert not hub.requests
    user.fetch()
    said = user.fetch(env=offline, sha256=digest(served))
    assert said == f"{forbidden}; taking the cached file of that revision\n"


def test_trust_on_first_use_records_the_digest_and_enforces_it(hub, user, served, large):
    assert user.fetch().splitlines()[-1] == (
        f"unverified: {PLACE}: the config has no digest; got sha256 {digest(served)} (matches what"
        f" the hub announces); --config trust=first-use records it in {user.lock}"
    )
    assert not user.lock.exists()
    assert user.fetch(trust="first-use").splitlines()[-1] == (
        f"recorded: {PLACE}: sha256 {digest(served)} in {user.lock}; commit that file"
    )
    entry = {"sha256": digest(served), "size_bytes": served.stat().st_size}
    assert json.loads(user.lock.read_text()) == {"a/b/c.gguf@main": entry}
    assert "unverified" not in user.fetch()
    user.out.unlink()
    hub.add("a/b", "main", "c.gguf", large)
    hub.requests.clear()
    assert user.fault(trust="first-use") == (
        f"{PLACE}: another file: the lock file {user.lock} says SHA-256 {digest(served)}, the hub"
        f" announces {digest(large)}; correct the one, or the revision"
    )
    assert not hub.asked("GET")
    assert user.left == [""]


def test_another_digest_or_size_than_the_configs_is_refused_before_the_download(hub, user, served):
    assert user.fault(sha256="0" * 64) == (
        f"{PLACE}: another file: the config says SHA-256 {'0' * 64}, the hub announces"
        f" {digest(served)}; correct the one, or the revision"
    )
    size = served.stat().st_size
    assert user.fault(size_bytes=5) == (
        f"{PLACE}: {size} bytes in 1 part(s), the config says 5; correct the one, or the revision"
    )
    assert not hub.asked("GET")


@pytest.mark.parametrize("said_by", ["the config", "the hub"])
def test_wrong_bytes_of_the_right_number_are_moved_aside(hub, user, served, said_by):
    hub.fail(FILE, wrong=True, times=1)
    entry = {"sha256": digest(served)} if said_by == "the config" else {}
    bad = hashlib.sha256(bytes(255 - byte for byte in served.read_bytes())).hexdigest()
    aside = user.blobs / f"{digest(served)}.bad-{bad[:8]}"
    assert user.fault(**entry) == (
        f"{PLACE}: damaged: SHA-256 {bad}, {said_by} says {digest(served)}; it is not used and is"
        f" now {aside}; delete that and run again"
    )
    assert digest(aside) == bad
    assert user.left == [f".bad-{bad[:8]}"]
    user.fetch(**entry)
    assert digest(user.out) == digest(served)


def test_a_file_damaged_in_the_cache_is_moved_aside_and_its_link_removed(hub, user, small):
    hub.add("a/b", COMMIT, "c.gguf", small)
    user.fetch(revision=COMMIT)
    user.out.unlink()
    (user.blobs / digest(small)).write_bytes(b"rot")
    assert "damaged: SHA-256" in user.fault(revision=COMMIT)
    assert user.left == [f".bad-{hashlib.sha256(b'rot').hexdigest()[:8]}"]
    assert not list((user.blobs.parent / "snapshots" / COMMIT).iterdir())
    user.fetch(revision=COMMIT)


def test_a_connection_that_always_breaks_is_resumed_as_long_as_bytes_come(hub, user, served_large):
    hub.fail(FILE, after=PIECE + 1)
    user.fetch(sha256=digest(served_large))
    requests = hub.asked("GET", "c.gguf")
    ranges = [None, f"bytes={PIECE}-", f"bytes={2 * PIECE}-"]
    assert [request.range for request in requests] == ranges
    assert requests[-1].sent == served_large.stat().st_size - 2 * PIECE
    assert user.left == [""]


def test_a_killed_download_is_resumed_by_the_process_that_waited(hub, user, served_large):
    hub.fail(FILE, after=PIECE + 1, then="stall", times=1)
    first = user.start(env={"HF_HUB_DOWNLOAD_TIMEOUT": "600"})
    partial = user.blobs / f"{digest(served_large)}.specmoe.incomplete"
    eventually(lambda: partial.exists() and partial.stat().st_size == PIECE)
    second = user.start(sha256=digest(served_large))
    assert "MB to download" in second.stdout.readline()
    assert second.stdout.readline() == f"{PLACE}: waiting for another process that downloads it\n"
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    said, error = second.communicate()
    assert second.returncode == 0, error
    assert said == f"{PLACE}: going on after {PIECE} of {served_large.stat().st_size} bytes\n"
    last = hub.asked("GET", "c.gguf")[-1]
    assert last.range == f"bytes={PIECE}-"
    assert last.sent == served_large.stat().st_size - PIECE
    assert user.left == [""]


def test_a_file_that_ends_too_early_is_reported_and_kept(hub, user, served_large):
    size, short = served_large.stat().st_size, PIECE + 5
    hub.fail(FILE, length=short)
    assert user.fault() == (
        f"{PLACE}: {hub.endpoint} answers 416 Requested Range Not Satisfiable; the file there ends"
        f" before the size it announces; {short} of {size} bytes are kept, run again to go on"
    )
    assert user.left == [".specmoe.incomplete"]


def test_more_bytes_than_announced_are_refused(user, served):
    user.blobs.mkdir(parents=True)
    (user.blobs / f"{digest(served)}.specmoe.incomplete").write_bytes(bytes(1 << 20))
    user.fetch()
    assert digest(user.out) == digest(served)


@pytest.mark.parametrize(
    ("method", "kept"), [("HEAD", ""), ("GET", "; 0 of {size} bytes are kept, run again to go on")]
)
def test_a_server_error_is_tried_again_and_a_permanent_one_is_one_line(
    hub, user, served, method, kept
):
    hub.fail(FILE, method=method, status=503)
    assert user.fault() == (
        f"{PLACE}: {hub.endpoint} answers 503 Service Unavailable; that may pass"
        + kept.format(size=served.stat().st_size)
    )
    hub.faults.clear()
    hub.fail(FILE, method=method, status=503, times=2)
    user.fetch()
    assert digest(user.out) == digest(served)


GATED = "gated; accept its terms on {hub}/a/b and set HF_TOKEN to a token of that account"
PROTECTED = "http://me:secret@127.0.0.1:9"  # a closed port


@pytest.mark.parametrize(
    ("entry", "env", "answer", "said"),
    [
        ({"repository": "a/x"}, {}, None, "{hub} has no such repository, or a private one"),
        ({"revision": "v9"}, {}, None, "the repository has no such revision; correct it"),
        ({"file": "x.gguf"}, {}, None, "the repository has no such file at that revision"),
        ({"repository": "a/b--c"}, {}, None, "no name of a repository; correct it"),
        ({}, {}, 403, "{hub} answers 403 Forbidden; if it is gated, accept its terms on its page"),
        ({}, {}, 404, "{hub} answers 404 Not Found; it has no such thing, or is no hub"),
        ({}, {}, "gated", GATED),
        ({}, {"HF_TOKEN": "hf_secret"}, "gated", GATED),
        ({}, {"HF_TOKEN": "hf_sécret"}, None, "the request has a bad header; correct HF_TOKEN"),
        ({}, {"HF_ENDPOINT": PROTECTED}, None, "http://127.0.0.1:9 cannot be reached ([Errno"),
        ({}, {"HF_ENDPOINT": "http://hub.invalid"}, None, "http://hub.invalid cannot be reached ("),
        ({}, {"HF_ENDPOINT": "hub"}, None, "hub is no address; correct HF_ENDPOINT"),
        ({}, {}, "no commit", "{hub} does not answer as a hub does (no commit, ETag or size)"),
    ],
)
def test_what_cannot_be_fetched_is_named_with_the_remedy(
    hub, user, served, monkeypatch, entry, env, answer, said
):
    if answer == "gated":
        hub.tokens["a/b"] = "hf_right"
    elif answer == "no commit":
        monkeypatch.setattr(hub, "commit", lambda folder: "")
    elif answer:
        hub.fail(FILE, method="HEAD", status=answer)
    place = {"repository": "a/b", "revision": "main", "file": "c.gguf"} | entry
    line = "{repository}, revision {revision}, file {file}: ".format(**place)
    assert user.fault(env=env, **entry).startswith(line + said.format(hub=hub.endpoint))
    assert user.left == []


def test_a_token_opens_a_gated_repository_and_goes_to_no_other_host(tmp_path, root, small):
    try:
        standin = StandIn(tmp_path / "hub", redirect=True)
    except OSError:
        pytest.skip("this machine has no second loopback address")
    with standin as hub:
        hub.add("a/b", "main", "c.gguf", small)
        hub.tokens["a/b"] = "hf_right"
        user = User(tmp_path, hub, root / "workflow/scripts")
        user.fetch(env={"HF_TOKEN": "hf_right"}, sha256=digest(small))
        stored = [request for request in hub.requests if request.host == "127.0.0.2"]
        assert [(request.method, request.authorized) for request in stored] == [("GET", False)]
        assert all(request.authorized for request in hub.requests if request not in stored)


def test_a_disk_that_is_too_small_is_reported_before_the_download(hub, user, parts):
    for part in parts:
        hub.add("a/b", "main", part.name, part)
    edge = "from specmoe.models import hub; hub.free_bytes = lambda folder: 20_000"
    needed = sum(part.stat().st_size for part in parts) / 1e6
    first = parts[0].name
    assert user.fault(edge=edge, file=first) == (
        f"a/b, revision main, file {first}: needs {needed:.1f} MB more in"
        f" {user.folder}/home/hub, 0.0 MB free; make room, or set HF_HOME to a folder on a larger"
        " disk"
    )
    assert not hub.asked("GET")


def test_a_disk_that_fills_up_is_one_line(user, served):
    edge = (
        "import errno; from specmoe.models import hub_file\n"
        "def full(*_, **more): raise OSError(errno.ENOSPC, 'full')\n"
        "hub_file.http_get = full"
    )
    assert user.fault(edge=edge) == (
        f"{PLACE}: the disk of {user.folder}/home/hub is full; make room and run again"
    )
    assert user.left == [".specmoe.incomplete"]


def test_a_file_too_large_for_plain_http_goes_another_way(user, served):
    edge = "from huggingface_hub import constants; constants.MAX_HTTP_DOWNLOAD_SIZE = 1000"
    process = user.start(edge=edge)
    said, error = process.communicate()
    assert f"{PLACE}: too large for plain HTTP; Xet starts anew if interrupted" in said
    # The stand-in has no Xet.
    assert process.returncode == 1
    assert "too large to be downloaded using the regular download method" in error.splitlines()[-1]
