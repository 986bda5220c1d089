r"""The commands of LaTeX that a campaign gives the paper: numbers, switches, tables and figures.

A number is like `\SpeedupMaxMoe`: a comment in `paper/macros.tex` explains it, and it is a dash if
it was not measured. `\TableAdvice` and `\FigureBreakEven` are a table and a figure with their
captions, `\ExhibitsTwins` all of a section; what the campaign has nothing to show in is empty.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from specmoe.analysis.advice import Answer
from specmoe.analysis.filters import (
    advised_targets,
    control_cells,
    count_check,
    method_cells,
    text_cells,
    whole_audit,
)
from specmoe.analysis.registry import Analysis, records
from specmoe.config.block import Protocol
from specmoe.paper.latex import command_name, to_latex
from specmoe.paper.macro_list import (
    FAMILIES,
    OF_TARGETS,
    all_macros,
    compared,
    gains_elsewhere,
    imposed_cells,
    of_family,
    predicted,
    widest_passes,
)
from specmoe.tables.exhibits import by_section, read_figures
from specmoe.tables.tables import read_tables, rows_of

HEADER = "% Made by specmoe from the campaign's analysis; changes are lost when it runs again.\n"

# The paper leaves these tables to the supplement where they would fill most of a page.
_MAY_BE_LONG = ("speculation", "break_even")
LONG_ROWS = 30

# Runs of fewer tokens are named as a threat: their first and last rounds weigh much.
SHORT_RUN = 64


def macros(analysis: Analysis, tables: Path) -> str:
    r"""Return `macros.tex`: a `\newcommand` a line, after switches like `\ifCampaignSynthetic`.

    `tables` is `paper/tables.yaml`.
    """
    lines = [HEADER, *(_switch(name, on) for name, on in switches(analysis, tables).items())]
    for macro in all_macros(analysis):
        comment = " ".join(macro.meaning.split())
        lines.append(f"\\newcommand{{\\{macro.name}}}{{{to_latex(macro.value)}}} % {comment}\n")
    return "".join(lines)


def switches(analysis: Analysis, tables: Path) -> dict[str, bool]:
    r"""Return whether each switch is on; `CampaignSynthetic` is `\ifCampaignSynthetic` in TeX."""
    cells = text_cells(analysis)
    campaign = records(analysis.campaign)[0]
    controls = count_check(whole_audit(analysis), "controls")
    widest, imposed = widest_passes(analysis), imposed_cells(analysis)
    lengths = {name: len(found.rows) for name, found in rows_of(analysis, tables).items()}
    answers, protocols = set(advised_targets(analysis)["answer"]), campaign["protocol"].split(", ")
    repeats = analysis.spread["blocks"].max()
    passes = analysis.verification
    return {
        "CampaignOfStudy": analysis.of_study,
        "CampaignSynthetic": bool(campaign["synthetic"]),
        "CampaignOtherModels": bool(campaign["other_models"]),
        "CampaignTrueShape": bool(campaign["true_shape"]),
        "CampaignPublished": campaign["source"] == "published",
        "CampaignPaired": bool(analysis.cells["paired"].all()),
        "SidesInTurn": "one after the other" in str(campaign.get("arrangement")),
        "RunsShort": bool(campaign["n_predict"] < SHORT_RUN),
        "BackendCpu": campaign["backend"] == "cpu",
        "CampaignMoreRepeats": bool(repeats > campaign["repeats"]),
        "StopsAtEnd": bool(campaign["stops_at_end"]),
        "SeveralMachines": campaign["machines"] > 1,
        "SettingsSeveral": len(cells) > 1,
        "MethodsSeveral": not method_cells(analysis).empty,
        "LoadsMeasured": bool(analysis.levels["factor"].eq("requests").any()),
        "CampaignLeavesOut": bool(campaign["left_out"]),
        "CampaignCompared": bool(compared(analysis)),
        **{f"Advised{answer.name.title()}": answer in answers for answer in Answer},
        "GainsElsewhere": bool(gains_elsewhere(analysis)),
        "CostsMeasured": not passes.empty,
        "PassesTimed": bool(passes["timed"].any()),
        "ExpertsSeen": bool(passes["experts_seen"].any()),
        "CostsPredicted": not predicted(analysis).empty,
        "ImposedMeasured": not imposed.empty,
        "ImposedAtSeveralShares": imposed["imposed_acceptance"].nunique() > 1,
        "ControlsMeasured": bool(controls["runs"]),
        "ControlsPassed": bool(controls["runs"]) and not controls["failed"],
        "ControlsOfBothKinds": control_cells(analysis)["control"].nunique() > 1,
        **{command_name("table", name): rows > 0 for name, rows in lengths.items()},
        **{command_name("long", name): lengths[name] > LONG_ROWS for name in _MAY_BE_LONG},
        **{command_name("widest", of): not of_family(widest, of).empty for of in FAMILIES},
        **{command_name("protocol", name): name in protocols for name in Protocol},
        **{command_name("measured", of): not of_family(cells, of).empty for of in OF_TARGETS},
    }


def switch_file(on: Mapping[str, bool]) -> str:
    r"""Return a TeX file with these switches, e.g. `\ifFigureThroughput`."""
    return "".join([HEADER, *(_switch(name, state) for name, state in on.items())])


def exhibits(analysis: Analysis, drawn: Collection[str], tables: Path, figures: Path) -> str:
    """Return `exhibits.tex`.

    `drawn` are the figures that show anything, `tables` and `figures` the files that specify them.
    """
    about_tables, about_figures = read_tables(tables), read_figures(figures)
    filled = [name for name, found in rows_of(analysis, tables).items() if found.rows]
    lines = [HEADER]
    for name, table in about_tables.items():
        text = rf"\{'pagestable' if table.long else 'floattable'}{{{name}}}{{{table.caption}}}"
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


def _switch(name: str, on: bool) -> str:
    return f"\\newif\\if{name} \\{name}{'true' if on else 'false'}\n"
