"""Recorded digests: sorted, readable, and never lost."""

import json
import subprocess
import sys

import pytest

from specmoe.errors import ModelError
from specmoe.models import digest_lock
from specmoe.models.digest_lock import Locked

ENTRY = Locked(sha256="a" * 64, size_bytes=7)


def test_entries_are_read_back_and_sorted(tmp_path):
    lock = tmp_path / "config" / "lock.json"
    assert digest_lock.read(lock) == {}  # it is not there
    for key in ("b/b/x.gguf@main", "a/b/x.gguf@main"):
        digest_lock.record(lock, key, ENTRY)
    assert digest_lock.read(lock) == {"a/b/x.gguf@main": ENTRY, "b/b/x.gguf@main": ENTRY}
    assert list(json.loads(lock.read_text())) == ["a/b/x.gguf@main", "b/b/x.gguf@main"]
    assert [path.name for path in lock.parent.iterdir()] == ["lock.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"a": {"sha256": "b", "size_bytes": 1}}'])
def test_a_damaged_lock_file_is_one_line(tmp_path, text):
    lock = tmp_path / "lock.json"
    lock.write_text(text)
    with pytest.raises(ModelError, match=r"lock\.json: damaged \(.*\); restore it") as caught:
        digest_lock.read(lock)
    assert "\n" not in str(caught.value)


def test_processes_that_record_at_once_lose_nothing(root, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from specmoe.models.digest_lock import Locked, record\n"
        "for number in range(20):\n"
        "    entry = Locked(sha256='a' * 64, size_bytes=7)\n"
        "    record(Path(sys.argv[1]), f'{sys.argv[2]}/{number}', entry)"
    )
    lock = tmp_path / "lock.json"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, lock, name], cwd=root / "workflow/scripts")
        for name in "abc"
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(digest_lock.read(lock)) == 60
