"""Small functions about files that several modules need: digests, models, records."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from specmoe.errors import ConfigError, DamagedFileError, ModelError, one_line

# The workflow's folder, which records name as the working directory sees it.
ROOT = Path(os.path.relpath(Path(__file__).parents[3]))
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex, reading it in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str | bytes) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def digest_of_parts(digests: Sequence[str]) -> str:
    """Return one digest for a model from those of its files.

    For a split model it is the SHA-256 of its parts' digests in hex, one a line. It does not depend
    on the names of the parts.
    """
    if len(digests) == 1:
        return digests[0]
    return sha256_of_text("".join(f"{digest}\n" for digest in digests))


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the name of a new file, which replaces `path` unless the block fails."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text file atomically; its folder is made if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8")


_SLOW_TO_READ = 10**9  # bytes that take more than a second


class Seen(NamedTuple):
    """The state of a file when it was hashed."""

    size: int
    mtime_ns: int
    ctime_ns: int  # nobody can set it back
    inode: int
    sha256: str


_MEMORY = TypeAdapter(dict[str, Seen])
_unsaved: dict[Path, dict[str, Seen]] = {}


def file_digests(
    files: Iterable[Path], memory: Path, known: Mapping[Path, str] | None = None
) -> dict[str, str]:
    """Return the SHA-256 of files by name; a file is hashed only if it changed since the last time.

    `memory` is the file that keeps the digests, once `save_digests` is called; without any files
    they are those of the last time. `known` has those that somebody has just computed.
    """
    before = _read_memory(memory)
    hashed = {seen[:4]: seen.sha256 for seen in before.values()}
    now = {}
    for file in files:
        stat = file.stat()
        state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        digest, size = (known or {}).get(file) or hashed.get(state), gigabytes(stat.st_size)
        if digest is None and stat.st_size > _SLOW_TO_READ:
            print(f"Reading {file} ({size}): new, or changed on the disk", flush=True)
        now[file.name] = Seen(*state, digest or sha256_of(file))
    if now != before and now:
        _unsaved[memory] = now
    return {name: seen.sha256 for name, seen in (now or before).items()}


def save_digests() -> None:
    """Keep the digests that this process has computed: jobs do, looking at files writes nothing."""
    while _unsaved:
        memory, seen = _unsaved.popitem()
        replace_text(memory, _MEMORY.dump_json(seen, indent=1).decode() + "\n")


def _read_memory(memory: Path) -> dict[str, Seen]:
    if memory in _unsaved:
        return _unsaved[memory]
    try:
        return _MEMORY.validate_json(memory.read_bytes())
    except (OSError, ValidationError):
        return {}


def parts_of(first: str) -> list[str]:
    """Return the names of all parts of a split GGUF, given its first; one name for a whole GGUF.

    llama.cpp finds the parts of a split model by their names: `x-00001-of-00003.gguf`.
    """
    match = _SPLIT.search(first)
    if match is None:
        return [first]
    count = int(match[2])
    return [_SPLIT.sub(f"-{part:05}-of-{count:05}.gguf", first) for part in range(1, count + 1)]


def existing(folder: Path) -> Path:
    """Return a folder if it exists, else the nearest folder above it that does."""
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


def gigabytes(count: float) -> str:
    """Return a number of bytes as GB or MB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def engine_path(model: Path) -> Path:
    """Return the name under which llama.cpp finds all parts of a model.

    For a link to a split model, made by `link`, it is the first part; for any other file it is the
    file itself.
    """
    if model.is_symlink():
        target = model.readlink()
        if target.name == str(target) and len(parts_of(target.name)) > 1:
            return model.with_name(target.name)
    return model


def seen_of_model(model: Path) -> Path:
    """Return the file with the states that a model's files had when they were hashed."""
    return model.parent / "seen" / f"{model.stem}.json"


def files_of_model(model: Path) -> list[Path]:
    """Return the files that llama.cpp reads of a model: one, or all parts of a split one."""
    first = engine_path(model)
    return [first.with_name(name) for name in parts_of(first.name)]


_LARGEST_TEXT = 10**9  # bytes; the prompts of one take several times as much memory


def read_text(path: Path) -> str:
    """Return a text whose lines end in a line feed, without the mark of Windows at its start.

    Raises ConfigError for what is no text in UTF-8, or too large for the memory.
    """
    if not path.is_file():  # opening a pipe would wait for a writer
        raise ConfigError(f"config: no file {path}; correct its path, or call from its folder")
    try:
        if (size := path.stat().st_size) > _LARGEST_TEXT:
            most = f"{gigabytes(_LARGEST_TEXT)} at most"
            raise ConfigError(f"{path}: a text of {gigabytes(size)}; give one of {most}")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: no text in UTF-8 (byte {error.start}); save it so") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_of(text: str | bytes) -> Any:
    """Return what JSON holds; raises ValueError."""
    try:
        return json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({error})") from error


def at_home(text: str) -> str:
    """Return a text whose paths have `~` for the user's home folder, to record and publish it."""
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (Path's fails where there is none)
    return re.sub(rf"(?<![\w./-]){re.escape(home)}(?![\w.-])", "~", text) if home else text


# Readers name each error of a file, and the first says enough.
_LONGEST_ERROR = 200  # characters
_REMEDY = "delete it and run snakemake again"


def read_record(path: Path) -> Any:
    """Return what a job wrote as JSON; raises DamagedFileError with the way out."""
    try:
        return json_of(path.read_bytes())
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read ({error.strerror}); {_REMEDY}") from error
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged: {one_line(error)}; {_REMEDY}") from error


@contextmanager
def named_if_damaged(path: Path) -> Iterator[None]:
    """Turn what the wrong contents of a file make its readers raise into a DamagedFileError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = one_line(f"{type(error).__name__}: {error}")[:_LONGEST_ERROR]
        raise DamagedFileError(
            f"{path} is damaged: it is not what the workflow wrote ({reason}); {_REMEDY}"
        ) from error


def link(file: Path, out: Path) -> None:
    """Make `out` a symbolic link to a model.

    A split model, given by its first part, gets one link for each part, beside `out` and named
    after it; `out` points to the first of them. Links of an earlier model are removed. Raises
    ModelError if a file is missing.
    """
    files = require_files(file)
    out.unlink(missing_ok=True)
    for old in out.parent.glob(f"{out.stem}-*-of-*.gguf"):
        if old.is_symlink() and _SPLIT.sub("", old.name) == out.stem:
            old.unlink()
    if len(files) == 1:
        out.symlink_to(file.absolute())
        return
    links = [out.with_name(name) for name in parts_of(f"{out.stem}-00001-of-{len(files):05}.gguf")]
    for part_link, part in zip(links, files, strict=True):
        part_link.symlink_to(part.absolute())
    out.symlink_to(links[0].name)


def require_files(model: Path) -> list[Path]:
    """Return the files of a model of the user's; raises ModelError if one is no file."""
    files = files_of_model(model)
    for part in files:
        if not part.is_file():
            where = part.absolute()
            error = f"{where} is no file" if part.exists() else f"no model file {where}"
            remedy = "correct its path, in model_sets or after target= or draft="
            if len(files) > 1:
                remedy = f"the model has {len(files)} parts, which must be in one folder"
            raise ModelError(f"{error}; {remedy}")
    return files
