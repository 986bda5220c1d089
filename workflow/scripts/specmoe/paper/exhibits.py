r"""The tables and figures of a campaign as commands of LaTeX, one by one and by section.

`\TableAdvice` and `\FigureBreakEven` are a table and a figure with their captions,
`\ExhibitsTwins` all of a section. What the campaign has nothing to show in is empty.
"""

from collections.abc import Collection
from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.paper.latex import command_name, to_latex
from specmoe.paper.macros import HEADER
from specmoe.tables.exhibits import by_section, read_figures
from specmoe.tables.tables import read_tables, rows_of


def exhibits(analysis: Analysis, drawn: Collection[str], tables: Path, figures: Path) -> str:
    """Return `exhibits.tex`.

    `drawn` are the figures that show anything, `tables` and `figures` the files that specify them.
    """
    about_tables, about_figures = read_tables(tables), read_figures(figures)
    filled = [name for name, found in rows_of(analysis, tables).items() if found.rows]
    lines = [HEADER]
    for name, table in about_tables.items():
        caption = table.caption + (r" \TheseSittings" if table.of_sitting else "")
        text = rf"\{'pagestable' if table.long else 'floattable'}{{{name}}}{{{caption}}}"
        lines.append(_command(command_name("table", name), text if name in filled else ""))
    for name, figure in about_figures.items():
        text = rf"\floatfigure{{{name}}}{{{to_latex(figure.note.en)}}}"
        lines.append(_command(command_name("figure", name), text if name in drawn else ""))
    tables_of, figures_of = by_section(about_tables, filled), by_section(about_figures, drawn)
    for section in dict.fromkeys([*tables_of, *figures_of]):
        shown = [command_name("figure", name) for name in figures_of.get(section, [])]
        shown += [command_name("table", name) for name in tables_of.get(section, [])]
        commands = "".join(f"\\{one}" for one in shown)
        lines.append(_command(command_name("exhibits", section), commands))
    return "".join(lines)


def _command(name: str, text: str) -> str:
    return f"\\newcommand{{\\{name}}}{{{text}}}\n"
