"""Models from the hub: downloaded, resumed, verified, or refused in one line.

The script is run as it is, against a stand-in of the hub; only waiting is left out.
"""

import errno
import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from specmoe.files import sha256_of as digest

from ...hub_standin import StandIn, environment

FILE = "a/b/c.gguf"
PLACE = "a/b, revision main, file c.gguf"
COMMIT = "0123456789abcdef" * 2 + "01234567"
# The client writes pieces of 10 MiB; a broken connection loses a smaller rest.
PIECE = 10 << 20
# What is downloaded is not read here, so it need not be a model.
SMALL, LARGE = b"model" * 20_000, b"large" * (5 << 20)
PARTS = {f"c-0000{part}-of-00003.gguf": SMALL + bytes([part]) for part in (1, 2, 3)}
FIRST, SECOND, THIRD = PARTS
# Runs a script without the pauses between attempts; what stands before it may change an edge.
RUN = (
    "import runpy, sys, time; time.sleep = lambda seconds: None; exec(sys.argv[1]);"
    "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.fixture
def hub(tmp_path):
    with StandIn(tmp_path / "hub") as standin:
        yield standin


@dataclass
class User:
    """A user with a cache and a folder of results, who runs the verb."""

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
                *(sys.executable, "-c", RUN, edge, str(self.scripts / "specmoe"), "fetch_model"),
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
def served(hub):
    """The small file, which the hub serves."""
    return hub.add("a/b", "main", "c.gguf", SMALL)


@pytest.fixture
def served_large(hub):
    """The large file, which the hub serves."""
    return hub.add("a/b", "main", "c.gguf", LARGE)


def test_a_file_is_downloaded_into_the_users_cache_and_linked(user, served):
    entry = {"sha256": digest(served), "size_bytes": served.stat().st_size}
    said = user.fetch(trust="first-use", **entry)
    assert said == f"{PLACE}: 0.1 MB to download into {user.folder}/home/hub\n"
    assert user.out.resolve() == user.blobs / digest(served)
    assert digest(user.out) == digest(served)
    assert user.left == [""]
    assert not user.lock.exists()  # the config has the digest


def test_a_split_model_gets_a_link_and_a_digest_for_each_part(hub, user):
    digests = [digest(hub.add("a/b", "main", f"BF16/{name}", PARTS[name])) for name in PARTS]
    user.fetch(file=f"BF16/{FIRST}", sha256=digests)
    assert user.out.readlink() == Path("m-00001-of-00003.gguf")
    links = sorted(user.out.parent.glob("m-*.gguf"))
    assert [digest(link) for link in links] == digests
    # Under the hub's names, in the folder of the commit.
    assert [link.readlink().name for link in links] == list(PARTS)
    # As sha256sum reads them.
    lines = [f"{one}  {link.name}\n" for one, link in zip(digests, links, strict=True)]
    assert user.out.with_suffix(".sha256").read_text() == "".join(lines)


def test_a_missing_part_is_named_before_the_download_and_a_wrong_one_after_it(hub, user):
    for name in (FIRST, SECOND):
        hub.add("a/b", "main", name, PARTS[name])
    assert user.fault(file=FIRST) == (
        f"a/b, revision main, file {THIRD}: the repository has no such file at that revision;"
        f" correct it (similar: {SECOND}, {FIRST})"
    )
    assert not hub.asked("GET", ".gguf")
    hub.add("a/b", "main", THIRD, PARTS[THIRD])
    hub.fail(f"a/b/{SECOND}", wrong=True)
    assert f"file {SECOND}: damaged" in user.fault(file=FIRST)


def test_a_file_in_the_cache_needs_no_network_if_the_revision_is_a_commit(hub, user):
    small = hub.add("a/b", COMMIT, "c.gguf", SMALL)
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


def test_trust_on_first_use_records_the_digest_and_enforces_it(hub, user, served):
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
    recorded = digest(served)
    hub.add("a/b", "main", "c.gguf", LARGE)
    hub.requests.clear()
    assert user.fault(trust="first-use") == (
        f"{PLACE}: another file: the lock file {user.lock} says SHA-256 {recorded}, the hub"
        f" announces {digest(served)}; correct the one, or the revision"
    )
    assert not hub.asked("GET", ".gguf")
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
    assert not hub.asked("GET", ".gguf")


@pytest.mark.parametrize("said_by", ["the config", "the hub"])
def test_wrong_bytes_of_the_right_number_are_deleted_and_downloaded_again(
    hub, user, served, said_by
):
    hub.fail(FILE, wrong=True, times=1)
    entry = {"sha256": digest(served)} if said_by == "the config" else {}
    bad = hashlib.sha256(bytes(255 - byte for byte in served.read_bytes())).hexdigest()
    assert user.fault(**entry) == (
        f"{PLACE}: damaged: SHA-256 {bad}, {said_by} says {digest(served)}; it is deleted, run"
        " again to download it anew"
    )
    assert user.left == []
    user.fetch(**entry)
    assert digest(user.out) == digest(served)


def test_a_file_damaged_in_the_cache_is_deleted_with_its_link(hub, user):
    small = hub.add("a/b", COMMIT, "c.gguf", SMALL)
    user.fetch(revision=COMMIT)
    user.out.unlink()
    (user.blobs / digest(small)).write_bytes(b"rot")
    assert "damaged: SHA-256" in user.fault(revision=COMMIT)
    assert user.left == []
    assert not list((user.blobs.parent / "snapshots" / COMMIT).iterdir())
    user.fetch(revision=COMMIT)


def test_a_connection_that_always_ends_is_resumed_as_long_as_bytes_come(hub, user, served_large):
    hub.fail(FILE, after=PIECE + 1)
    said = user.fetch(sha256=digest(served_large))
    assert said == f"{PLACE}: 26.2 MB to download into {user.folder}/home/hub\n"
    requests = hub.asked("GET", "c.gguf")
    ranges = [None, f"bytes={PIECE}-", f"bytes={2 * PIECE}-"]
    assert [request.range for request in requests] == ranges
    assert user.left == [""]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"after": 5, "reset": True}, f"interrupted ([Errno {errno.ECONNRESET}] "),
        ({"length": 5}, "interrupted (another number of bytes came than announced); run again"),
        ({"status": 503}, "{hub} answers 503 Service Unavailable; that may pass"),
    ],
)
def test_an_interrupted_download_is_called_so_and_begins_anew(hub, user, served, fault, said):
    hub.fail(FILE, **fault)
    assert user.fault(sha256=digest(served)).startswith(
        PLACE + ": " + said.format(hub=hub.endpoint)
    )
    assert user.left == []
    hub.faults.clear()
    user.fetch(sha256=digest(served))
    assert digest(user.out) == digest(served)


def test_a_server_error_of_a_file_is_tried_again(hub, user, served):
    hub.fail(FILE, method="HEAD", status=503, times=2)
    user.fetch()
    assert digest(user.out) == digest(served)


ACCOUNT = "run `hf auth login` or set HF_TOKEN, as an account that may read it"
GATED = f"gated; accept its terms on {{hub}}/a/b, and {ACCOUNT}"
PROTECTED = "http://me:secret@127.0.0.1:9"  # a closed port


@pytest.mark.parametrize(
    ("entry", "env", "answer", "said"),
    [
        (
            {"repository": "a/x"},
            {},
            None,
            "{hub} has no such repository, or a private one; correct its name, or " + ACCOUNT,
        ),
        ({"revision": "v9"}, {}, None, "the repository has no such revision; correct it"),
        (
            {"file": "cc.gguf"},
            {},
            None,
            "the repository has no such file at that revision; correct it (similar: c.gguf)",
        ),
        ({"repository": "a/b--c"}, {}, None, "no name of a repository; correct it"),
        ({}, {}, 403, "{hub} answers 403 Forbidden; if it is gated, accept its terms on its page"),
        ({}, {}, 404, "{hub} answers 404 Not Found; it has no such thing, or is no hub"),
        ({}, {}, 503, "{hub} answers 503 Service Unavailable; that may pass"),
        ({}, {}, "gated", GATED),
        ({}, {"HF_TOKEN": "hf_secret"}, "gated", GATED),
        ({}, {"HF_TOKEN": "hf_sécret"}, None, "the request has a bad header; correct HF_TOKEN"),
        ({}, {"HF_ENDPOINT": PROTECTED}, None, "http://127.0.0.1:9 cannot be reached ([Errno"),
        ({}, {"HF_ENDPOINT": "http://hub.invalid"}, None, "http://hub.invalid cannot be reached ("),
        ({}, {"HF_ENDPOINT": "hub"}, None, "hub is no address; correct HF_ENDPOINT"),
        ({}, {}, "no commit", "what answers is no hub; correct HF_ENDPOINT"),
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
        hub.fail("a/b", status=answer)
    place = {"repository": "a/b", "revision": "main", "file": "c.gguf"} | entry
    line = "{repository}, revision {revision}, file {file}: ".format(**place)
    assert user.fault(env=env, **entry).startswith(line + said.format(hub=hub.endpoint))
    assert user.left == []


def test_a_token_opens_a_gated_repository_and_goes_to_no_other_host(tmp_path, root):
    try:
        standin = StandIn(tmp_path / "hub", redirect=True)
    except OSError:
        pytest.skip("this machine has no second loopback address")
    with standin as hub:
        small = hub.add("a/b", "main", "c.gguf", SMALL)
        hub.tokens["a/b"] = "hf_right"
        user = User(tmp_path, hub, root / "workflow/scripts")
        user.fetch(env={"HF_TOKEN": "hf_right"}, sha256=digest(small))
        stored = [request for request in hub.requests if request.host == "127.0.0.2"]
        assert [(request.method, request.authorized) for request in stored] == [("GET", False)]
        assert all(request.authorized for request in hub.requests if request not in stored)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_small_disk_is_found_and_one_that_fills_up_is_one_line(
    hub, user, served_large, small_disk
):
    assert user.fault() == (
        f"{PLACE}: needs 26.2 MB more in {small_disk}/hub, 12.6 MB free; make room (killed"
        " downloads leave files *.incomplete there), or set HF_HOME to a folder on a larger disk"
    )
    assert not hub.asked("GET", ".gguf")
    edge = "from specmoe.models import hub; hub.free_bytes = lambda folder: 10**12"
    assert user.fault(edge=edge) == (
        f"{PLACE}: the disk of {small_disk}/hub is full; make room and run again"
    )
    assert user.left == []
