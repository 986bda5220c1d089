"""Records of measured jobs, kept by a digest of what was asked, so that none is measured twice.

A record is two lines of JSON. The first says what was asked, how long it took, and the SHA-256 of
the second, which is what was measured. It lies in a campaign's store under the job's name and the
digest of what was asked. Where rules look for it is a link into the store; the job makes it, again
where another configuration is asked for, and the old record where that comes back.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specmoe.errors import DamagedFileError, MeasurementError
from specmoe.files import json_of, replace_text, sha256_of_text

Request = dict[str, Any]
"""All that a measurement depends on, as JSON has it: digests in place of files."""

UNKNOWN = "not known yet"
"""In place of a digest of something that is not made yet; it may be anything."""

DIGITS = 16
_SHOWN = 5  # differences


def digest_of(request: Request) -> str:
    """Return the first digits of a request's SHA-256; null is as nothing, as in `changes`."""
    return sha256_of_text(json.dumps(_given(request), sort_keys=True))[:DIGITS]


def _given(value: Any) -> Any:
    """Return a request without what is null in it: what later versions may ask for besides."""
    if not isinstance(value, dict):
        return value
    return {key: _given(part) for key, part in value.items() if part is not None}


def changes(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """Yield how an earlier request differs from today's; UNKNOWN is no difference.

    This is the one comparison of the two: at every start, and when records are collected.
    """
    if UNKNOWN in (str(before), str(now)):
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from changes(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    elif isinstance(before, dict) or isinstance(now, dict):
        yield f"{name} is {'left out' if now is None else 'added'}"
    elif before != now:
        yield f"{name}: {_shown(before)} before, {_shown(now)} now"


def first_changes(before: Request, now: Request) -> str:
    """Return the first of `changes` in one line; empty if there are none."""
    listed = [*changes(before, now)]
    more = f", and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _shown(value: Any) -> str:
    """Return a value as text; of a digest the first digits, which tell files apart."""
    text = "nothing" if value is None else str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text


@dataclass(frozen=True)
class Head:
    """The first line of a record."""

    request: Request
    seconds: float  # that measuring took
    sha256: str  # of the second line


@dataclass(frozen=True)
class Records:
    """The records of a campaign, in its folder; a job's name is a path, as `blocks/S/moe/d/r0`."""

    folder: Path
    lock: Callable[[], AbstractContextManager[None]] = nullcontext  # of whoever measures

    def link(self, name: str) -> Path:
        """Return where rules look for the record of a job."""
        return self.folder / f"{name}.jsonl"

    def kept(self, name: str, request: Request) -> Path:
        """Return where a record of a request is kept, if there is one."""
        return self.folder / "store" / name / f"{digest_of(request)}.jsonl"

    def measured_once(
        self, name: str, request: Request, measure: Callable[[], dict[str, Any]]
    ) -> tuple[dict[str, Any], bool]:
        """Return what is kept of a request, or measure and keep it; and whether it was measured.

        It is looked for again once nobody else measures, which `lock` sees to. Raises
        DamagedFileError for a kept record that is not whole, and MeasurementError where something
        is asked that is not made yet: nobody would find the record.
        """
        if UNKNOWN in json.dumps(request):
            raise MeasurementError(
                f"{name}: a model, text or engine of it is not there; run `snakemake runs`"
            )
        file = self.kept(name, request)
        if not file.exists():
            with self.lock():
                if not file.exists():
                    began = time.monotonic()
                    measured = measure()
                    save(file, request, measured, time.monotonic() - began)
                    return measured, True
        return load_kept(file)[1], False

    def relink(self, name: str, request: Request) -> None:
        """Make the link to what is kept of a request."""
        link, file = self.link(name), self.kept(name, request)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(file, link.parent))

    def take_in(self, name: str) -> None:
        """Move a record that is no link, as in a copy, to the store, and link it."""
        link = self.link(name)
        if not link.is_symlink() and (head := head_of(link)):
            file = self.kept(name, head.request)
            file.parent.mkdir(parents=True, exist_ok=True)
            stat = link.replace(file).stat()
            self.relink(name, head.request)
            os.utime(link, ns=(stat.st_atime_ns, stat.st_mtime_ns), follow_symlinks=False)

    def seconds(self, name: str, request: Request) -> float | None:
        """Return how long a job took that is measured as asked; None if it is not."""
        heads = filter(None, map(head_of, (self.link(name), self.kept(name, request))))
        took = (head.seconds for head in heads if not first_changes(head.request, request))
        return next(took, None)

    def latest_change(self, name: str, request: Request) -> str:
        """Return how the latest record of a job differs from what is asked; empty without one."""
        files = (self.folder / "store" / name).glob("*.jsonl")
        heads = (head_of(file) for file in sorted(files, key=lambda file: -file.stat().st_mtime))
        latest = next(filter(None, heads), None)
        return first_changes(latest.request, request) if latest else ""


def save(file: Path, request: Request, measured: dict[str, Any], seconds: float) -> None:
    """Write a record."""
    text = json.dumps(measured, ensure_ascii=False)
    head = {"request": request, "seconds": seconds, "sha256": sha256_of_text(text)}
    replace_text(file, f"{json.dumps(head, ensure_ascii=False)}\n{text}\n")


def head_of(file: Path) -> Head | None:
    """Return the first line of a record; None if there is no record, or it has no such line."""
    if not file.is_file():  # a pipe waits for a writer, and a device has no end
        return None
    try:
        with file.open("rb") as opened:
            head = json_of(opened.readline())
        return Head(dict(head["request"]), float(head["seconds"]), str(head["sha256"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def load_kept(file: Path) -> tuple[Request, dict[str, Any]]:
    """Return what a record was asked and what it measured. Raises DamagedFileError."""
    at = file if not file.is_symlink() else Path(os.path.relpath(file.resolve()))
    remedy = f"delete {at} and run snakemake again, which measures it again"
    head = head_of(file)
    try:
        if head is None:
            raise ValueError("it is no record")
        lines = file.read_bytes().split(b"\n")
        if len(lines) != 3 or sha256_of_text(lines[1]) != head.sha256:
            raise ValueError("its checksum is another")
        return head.request, dict(json_of(lines[1]))
    except (OSError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}; {remedy}") from error
