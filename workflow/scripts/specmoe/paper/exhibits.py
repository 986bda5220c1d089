r"""The tables and figures of a campaign as commands of LaTeX, one by one and by section.

`\TableAdvice` and `\FigureBreakEven` are a table and a figure with their captions,
`\ExhibitsTwins` all of a section. What the campaign has nothing to show in is empty.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.paper.latex import command_name
from specmoe.paper.macros import HEADER
from specmoe.tables.exhibits import Exhibit, by_section, read_figures
from specmoe.tables.tables import read_tables, rows_of


def exhibits(analysis: Analysis, drawn: Collection[str], tables: Path, figures: Path) -> str:
    """Return `exhibits.tex`.

    `drawn` are the figures that show anything, `tables` and `figures` the files that specify them.
    """
    about_tables, about_figures = read_tables(tables), read_figures(figures)
    filled = [name for name, found in rows_of(analysis, tables).items() if found.rows]
    on_pages = {name for name, about in about_tables.items() if about.long}
    places = {name: "pagestable" if name in on_pages else "floattable" for name in filled}
    lines = [HEADER, *_commands("table", about_tables, places)]
    lines += _commands("figure", about_figures, dict.fromkeys(drawn, "floatfigure"))
    tables_of, figures_of = by_section(about_tables, filled), by_section(about_figures, drawn)
    for section in dict.fromkeys([*tables_of, *figures_of]):
        shown = [command_name("figure", name) for name in figures_of.get(section, [])]
        shown += [command_name("table", name) for name in tables_of.get(section, [])]
        lines.append(
            _command(command_name("exhibits", section), "".join(f"\\{it}" for it in shown))
        )
    return "".join(lines)


def _commands(
    kind: str, exhibits: Mapping[str, Exhibit], places: Mapping[str, str]
) -> Iterator[str]:
    for name, about in exhibits.items():
        place = f"\\{places[name]}{{{name}}}{{{about.caption}}}" if name in places else ""
        yield _command(command_name(kind, name), place)


def _command(name: str, text: str) -> str:
    return f"\\newcommand{{\\{name}}}{{{text}}}\n"
