r"""The numbers a text can cite, as LaTeX commands: `\SpeedupBestMoeQFourDraftTwoB` and the like.

What each says stands beside it in `paper/macros.tex`. A value that was not measured is a dash.
"""

from collections.abc import Mapping

from specmoe.analysis.advice import Answer
from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import (
    advised_targets,
    control_cells,
    count_check,
    records,
    table,
    text_cells,
    whole_audit,
)
from specmoe.config.block import Protocol
from specmoe.errors import ConfigError
from specmoe.paper.latex import command_name, to_latex
from specmoe.paper.macro_list import (
    FAMILIES,
    Macro,
    all_macros,
    compared,
    imposed_cells,
    of_family,
    predicted,
    widest_passes,
)
from specmoe.paper.tables import TABLES, has_rows, rows_of

HEADER = "% Made by specmoe from the campaign's analysis; changes are lost when it runs again.\n"

# What leaves room for little else on a page is left to the supplement.
LONG_ROWS = 30


def macros(analysis: Analysis) -> str:
    r"""Return `macros.tex`: a `\newcommand` a line, after switches like `\ifCampaignSynthetic`."""
    lines = [HEADER, *(_switch(name, on) for name, on in switches(analysis).items())]
    for name, macro in named_macros(analysis).items():
        comment = " ".join(macro.meaning.split())
        lines.append(f"\\newcommand{{\\{name}}}{{{to_latex(macro.value)}}} % {comment}\n")
    return "".join(lines)


def named_macros(analysis: Analysis) -> dict[str, Macro]:
    """Return the numbers a text can cite by the names of their commands.

    Raises ConfigError when two ids would give one command.
    """
    taken: dict[str, Macro] = {}
    for macro in all_macros(analysis):
        name = command_name(*macro.words)
        if name in taken:
            raise ConfigError(
                f"ids {_ids(taken[name])} and {_ids(macro)} both give the LaTeX command \\{name};"
                " rename one of them"
            )
        taken[name] = macro
    return taken


def switches(analysis: Analysis) -> dict[str, bool]:
    r"""Return what a text asks of a campaign, by the names of `\ifCampaignSynthetic` and so on."""
    cells = text_cells(analysis)
    campaign = records(analysis.campaign)[0]
    controls = count_check(whole_audit(analysis), "controls")
    widest, imposed = widest_passes(analysis), imposed_cells(analysis)
    contexts = {name: make(analysis) for name, make in TABLES.items()}
    return {
        "CampaignOfStudy": analysis.of_study,
        "CampaignSynthetic": bool(campaign["synthetic"]),
        "CampaignTrueShape": bool(campaign["true_shape"]),
        "CampaignPublished": campaign["source"] == "published",
        "CampaignPaired": bool(table(analysis, "cells")["paired"].all()),
        "CampaignMoreRepeats": bool(
            table(analysis, "spread")["blocks"].max() > campaign["repeats"]
        ),
        "SettingsSeveral": len(cells) > 1,
        "CampaignCompared": bool(compared(analysis)),
        **{
            command_name("advised", word): answer in set(advised_targets(analysis)["answer"])
            for word, answer in [
                ("on", Answer.ON),
                ("off", Answer.OFF),
                ("unknown", Answer.UNKNOWN),
            ]
        },
        "CostsMeasured": not table(analysis, "verification").empty,
        "CostsPredicted": not predicted(analysis).empty,
        "ImposedMeasured": not imposed.empty,
        "ImposedAtSeveralShares": imposed["imposed_acceptance"].nunique() > 1,
        "ControlsMeasured": bool(controls["runs"]),
        "ControlsPassed": bool(controls["runs"]) and not controls["failed"],
        "ControlsOfBothKinds": control_cells(analysis)["control"].nunique() > 1,
        **{command_name("table", name): has_rows(context) for name, context in contexts.items()},
        **{
            command_name("long", name): len(rows_of(context)) > LONG_ROWS
            for name, context in contexts.items()
        },
        **{
            command_name("widest", family): not of_family(widest, family).empty
            for family in FAMILIES
        },
        **{
            command_name("protocol", protocol): protocol in campaign["protocol"].split(", ")
            for protocol in Protocol
        },
        **{
            command_name("measured", family): not of_family(cells, family).empty
            for family in FAMILIES
        },
    }


def switch_file(on: Mapping[str, bool]) -> str:
    r"""Return a file of nothing but switches, like `\ifFigureThroughput`, by their names."""
    return "".join([HEADER, *(_switch(name, state) for name, state in on.items())])


def _switch(name: str, on: bool) -> str:
    return f"\\newif\\if{name} \\{name}{'true' if on else 'false'}\n"


def _ids(macro: Macro) -> str:
    return " ".join(repr(word) for word in macro.words)
