"""Messages for users: progress as plain lines, and each error in one, with what to do."""

import difflib
import errno
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

ERRORS = Path("results/errors")  # tracebacks of unforeseen errors


class SpecmoeError(Exception):
    """A foreseeable error: shown to the user as one line, without a traceback."""


class ConfigError(SpecmoeError):
    """The configuration names something that does not exist or does not fit."""


class PlanError(SpecmoeError):
    """The campaign needs more than the machine has."""


class ModelError(SpecmoeError):
    """A model file is missing, damaged, or does not fit its partner."""


class DownloadError(SpecmoeError):
    """A file could not be downloaded, or one that is no model is not the expected one."""


class EngineError(SpecmoeError):
    """llama.cpp could not be fetched, built or started."""


class MeasurementError(SpecmoeError):
    """A block started, but its result is not a measurement."""


class DamagedFileError(SpecmoeError):
    """A file that the workflow made is no longer what it wrote."""


class SchemaError(SpecmoeError):
    """A table of rows is damaged, of another version, or breaks its schema."""


class PaperError(SpecmoeError):
    """The paper could not be compiled."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the nearest known name, or all of them."""
    candidates = sorted(known)
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(candidates) or 'none'}"


# A list of errors that is longer says no more than its begin.
_MOST_ERRORS = 12


def abridged(errors: Sequence[str]) -> str:
    """Return errors, a line each: of many the first ones, and how many more there are."""
    more = len(errors) - _MOST_ERRORS
    return "\n".join([*errors[:_MOST_ERRORS], *([f"and {more} errors more"] if more > 0 else [])])


def error_message(error: BaseException) -> str:
    """Return what the user is told of an error, or of several: a line each, with its kind."""
    if isinstance(error, BaseExceptionGroup):
        lines = [line for inner in error.exceptions for line in error_message(inner).splitlines()]
        return abridged(list(dict.fromkeys(lines)))
    return "\n".join(f"{type(error).__name__}: {line}" for line in _text(error).splitlines())


def _text(error: BaseException) -> str:
    """Return the text of an error; where the surroundings are at fault, with what to do."""
    if isinstance(error, ImportError):
        return (
            f"{error}; {sys.executable} has other packages than requirements.txt, so run the"
            " snakemake of `make setup`"
        )
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        return f"{error.filename or 'a file'}: {error.strerror}; {_REMEDIES[error.errno]}"
    if isinstance(error, SpecmoeError):  # whatever a tool says of itself on a full disk
        for folder in (Path.cwd(), *Path("results").glob("*/")):  # may be disks of their own
            if shutil.disk_usage(folder).free < _FULL_BYTES:
                return f"{error}; the disk of {folder} is full; {_MAKE_ROOM}"
    return str(error)


_FULL_BYTES = 2**20
_MAKE_ROOM = "make room on its disk (`df -h`), and the same command goes on"
_REMEDIES = {
    **dict.fromkeys([errno.ENOSPC, errno.EDQUOT], _MAKE_ROOM),
    errno.EISDIR: "a file belongs there; move the folder away",
    errno.ENOTDIR: "a file is where a folder belongs; move it away",
    errno.ENAMETOOLONG: "shorten its name",
}


def one_line(error: object) -> str:
    """Return an error's text on one line: libraries break theirs."""
    return " ".join(str(error).split())


class _Lines(logging.StreamHandler[TextIO]):
    """Writes the bare message and flushes it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Raise what went wrong: logging would hide a full disk behind a traceback and go on."""
        raise


@contextmanager
def lines_to(stream: TextIO, name: str = "specmoe", level: int = logging.INFO) -> Iterator[None]:
    """Write what the logger `name` and the loggers below it receive to a stream, a line each."""
    logger, handler = logging.getLogger(name), _Lines(stream)
    handler.setLevel(level)
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def drop_unread() -> None:
    """Let standard output and error drop what nobody reads any more, as after `| head`."""

    def tried(act: Callable[..., Any], *given: Any) -> Any:
        with suppress(BrokenPipeError):
            return act(*given)

    for stream in (sys.stdout, sys.stderr):
        for name in ("write", "flush"):
            setattr(stream, name, partial(tried, getattr(stream, name)))


def run(main: Callable[[], None]) -> None:
    """Run what a command does: progress goes to stdout, an error ends it with one line.

    The traceback of an unforeseen error goes to a file, which the line names.
    """
    drop_unread()
    try:
        with lines_to(sys.stdout):
            main()
    except (SpecmoeError, OSError, MemoryError, ImportError, ExceptionGroup) as error:
        sys.exit(error_message(error))
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0]
        try:
            file = _keep_traceback()
        except OSError as full:  # which is why, mostly
            sys.exit(error_message(full))
        sys.exit(
            f"{_command()} failed in a way it does not foresee:"
            f" {type(error).__name__}: {first_line}; please report it with {file}"
        )


DOWNLOAD_LIMIT_S = 6 * 3600
"""The longest that a download may take, and again for each 200 MB: 10 kB a second."""
TOO_SLOW = "the server sends so little that it never ends; check the network, and run again"


@contextmanager
def ended_if_slow(place: str, size: float = 0, error: SpecmoeError | None = None) -> Iterator[None]:
    """End the process with a line if a download takes too long, also in a library's own code.

    Whatever else may never end has an `error` of its own.
    """
    late = error or DownloadError(TOO_SLOW)

    def end() -> None:
        print(error_message(type(late)(f"{place}: {late}")), file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(DOWNLOAD_LIMIT_S * (1 + size / 2e8), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def interrupt(*_: object) -> None:
    """End what runs; what is tidied up then is not interrupted again, as by a second Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _command() -> str:
    """Return the name of what runs: `specmoe` and the verb."""
    return " ".join(["specmoe", *sys.argv[1:2]])


def _keep_traceback() -> Path:
    folder = ERRORS if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_command().replace(' ', '-')}-{os.getpid()}.log"
    file.write_text(f"{shlex.join(sys.argv)}\n{traceback.format_exc()}", encoding="utf-8")
    return file
