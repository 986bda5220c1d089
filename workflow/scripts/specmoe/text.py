"""Numbers as text, in every text for people."""

import re
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specmoe.files import gigabytes

if TYPE_CHECKING:
    import jinja2


def counted(count: int | str, noun: str, several: str | None = None) -> str:
    """Return a count with its noun: `1 suite`, `2 suites`; `several` is an irregular plural.

    A count that is text is printed as it is, with the spaces between its groups of digits.
    """
    return f"{count} {noun if str(count) == '1' else several or f'{noun}s'}"


def listed(names: Iterable[str | int]) -> str:
    """Return names as a sentence has them: `A`, `A and B`, `A, B and C`; `A, 1; and B`."""
    *first, last = every = [*map(str, names)] or [""]
    apart, end = ("; ", "; and") if any("," in name for name in every) else (", ", " and")
    return f"{apart.join(first)}{end} {last}" if first else last


def duration(seconds: float | None, most: float | None = None) -> str:
    """Return a time in words, or the range of one."""
    if seconds is None:
        return "unknown"
    most = most or seconds
    unit, size = ("s", 1) if most < 100 else ("min", 60) if most < 5 * 3600 else ("h", 3600)
    ends = dict.fromkeys(f"{end / size:.{int(unit == 'h')}f}" for end in (seconds, most))
    return f"{' to '.join(ends)} {unit}"


def exit_status(code: int) -> str:
    """Return an exit code as text; that of a signal is its number negated, or 128 above it."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"exit code {code}"
    if number == signal.SIGILL:
        name += ", an unknown instruction; set campaign.engine: portable"
    return f"killed by {name}"


def in_columns(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return a line of text for each of cells, whose columns are as wide as they must be."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def spreadsheet_text(value: Any) -> Any:
    """Return a cell of a CSV: an apostrophe stands before words that would run as a formula."""
    return f"'{value}" if isinstance(value, str) and re.match(r"[=+\-@\t\r]", value) else value


def templates_in(
    folder: Path, printed: Callable[[Any], str] = str, **syntax: str
) -> "jinja2.Environment":
    """Return the templates of a folder; an undefined name is an error.

    `printed` makes text of every value but markup.
    """
    import jinja2  # which few jobs need
    from markupsafe import Markup

    env = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printed(value),
        loader=jinja2.FileSystemLoader(folder),
        **syntax,  # type: ignore[arg-type]
    )
    env.filters.update(counted=counted, gigabytes=gigabytes, listed=listed)
    return env


def fill_template(template: Path, **values: Any) -> str:
    """Return a plain text or Markdown as its template says it."""
    from markupsafe import Markup

    env = templates_in(template.parent, Markup)  # nothing is escaped
    return env.get_template(template.name).render(values)
