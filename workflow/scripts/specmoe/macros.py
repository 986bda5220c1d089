r"""The numbers a text can cite, as LaTeX commands: `\SpeedupBestMoeQFourDraftTwoB` and the like.

What each says stands beside it in `paper/macros.tex`. A value that was not measured is a dash.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis import Analysis
from specmoe.audit import ALL
from specmoe.block import Protocol
from specmoe.claim_verdicts import Verdict
from specmoe.cost_tables import WHOLE
from specmoe.errors import ConfigError
from specmoe.latex import (
    NULL,
    bandwidth,
    command_name,
    fixed,
    interval,
    memory,
    percent,
    thousands,
    to_latex,
)
from specmoe.tables import Record, records, short_commits
from specmoe.views import control_cells, ordered_baselines, table, text_cells

HEADER = "% Made by specmoe from the campaign's analysis; changes are lost when it runs again.\n"
EVERYONE = "all"
FAMILIES = (EVERYONE, "moe", "dense")


class Macro(NamedTuple):
    """A command: the words of its name, its value, and what it says (a comment in the file)."""

    words: tuple[str | int, ...]
    value: Any
    meaning: str


def macros(analysis: Analysis) -> str:
    r"""Return `macros.tex`: one `\newcommand` a line, after switches like `\ifCampaignSynthetic`.

    Raises ConfigError when two ids would give one command.
    """
    lines = [HEADER, *(_switch(name, on) for name, on in _switches(analysis).items())]
    taken: dict[str, Macro] = {}
    for macro in _list(analysis):
        name = command_name(*macro.words)
        if name in taken:
            raise ConfigError(
                f"ids {_ids(taken[name])} and {_ids(macro)} both give the LaTeX command \\{name};"
                " rename one of them"
            )
        taken[name] = macro
        comment = " ".join(macro.meaning.split())
        lines.append(f"\\newcommand{{\\{name}}}{{{to_latex(macro.value)}}} % {comment}\n")
    return "".join(lines)


def _switches(analysis: Analysis) -> dict[str, bool]:
    cells = text_cells(analysis)
    campaign = records(analysis.campaign)[0]
    return {
        "CampaignSynthetic": bool(campaign["synthetic"]),
        "CampaignPublished": campaign["source"] == "published",
        "CampaignPaired": bool(table(analysis, "cells")["paired"].all()),
        "CampaignMoreRepeats": bool(
            table(analysis, "spread")["blocks"].max() > campaign["repeats"]
        ),
        "CampaignBeside": bool(_beside(analysis)),
        "CostsMeasured": not table(analysis, "verification").empty,
        "CostsPredicted": not _predicted(analysis).empty,
        "ControlsMeasured": any(_controls(analysis)),
        "ControlsPassed": any(_controls(analysis)) and not _controls(analysis)[1],
        "ControlsOfBothKinds": control_cells(analysis)["control"].nunique() > 1,
        **{
            command_name("protocol", protocol): protocol in campaign["protocol"].split(", ")
            for protocol in Protocol
        },
        **{
            command_name("measured", family): not _of_family(cells, family).empty
            for family in FAMILIES
        },
    }


def _controls(analysis: Analysis) -> tuple[int, int]:
    """Return how many runs of controls passed the audit's check, and how many failed it."""
    audit = table(analysis, "audit")
    counted = audit[audit["target"] == ALL].reindex(columns=["controls_passed", "controls_failed"])
    passed, failed = counted.sum().astype(int)
    return int(passed), int(failed)


def _beside(analysis: Analysis) -> list[str]:
    """Return the names of the campaigns shown with this one."""
    shown = table(analysis, "required_time")["campaign"].unique()
    return [name for name in shown if name != analysis.name]


def _switch(name: str, on: bool) -> str:
    return f"\\newif\\if{name} \\{name}{'true' if on else 'false'}\n"


def _of_family(cells: pd.DataFrame, family: str) -> pd.DataFrame:
    return cells if family == EVERYONE else cells[cells["family"] == family]


def _ids(macro: Macro) -> str:
    return " ".join(repr(word) for word in macro.words)


def _list(analysis: Analysis) -> Iterator[Macro]:
    cells = text_cells(analysis)
    yield from _conditions(records(analysis.campaign)[0])
    beside = ", ".join(_beside(analysis))
    yield Macro(("campaigns beside",), beside, "campaigns shown with this one")
    yield from _counts(analysis)
    passed, failed = _controls(analysis)
    yield Macro(("controls passed",), thousands(passed), "runs of controls as they must be")
    yield Macro(("controls failed",), thousands(failed), "runs of controls that are not")
    yield from _verdicts(analysis)
    yield from _costs(analysis)
    for row in records(ordered_baselines(analysis)):
        yield from _baseline(row)
    for family in FAMILIES:
        yield from _ranges(cells, family)
    yield from _best(cells, ["series"])
    yield from _best(cells, ["series", "draft"])
    for row in records(cells):
        yield from _cell(row)


def _conditions(campaign: Record) -> Iterator[Macro]:
    for words, value, meaning in [
        ("campaign name", campaign["campaign"], "campaign"),
        ("campaign protocol", campaign["protocol"], "how runs were measured"),
        ("campaign backend", campaign["backend"], "what the engine computed on"),
        ("campaign length unit", campaign["length_unit"], "what prompt lengths count"),
        ("campaign repeats", campaign["repeats"], "repeats of every block"),
        ("campaign tokens", campaign["n_predict"], "tokens generated by a run"),
        ("campaign temperature", fixed(campaign["temperature"]), "temperature of sampling"),
        ("campaign precision", percent(campaign["precision"], 0), "asked of intervals, in percent"),
        ("campaign confidence", percent(campaign["confidence"], 0), "of intervals, in percent"),
        ("campaign started", _day(campaign["started_at"]), "start of the first run (UTC)"),
        ("campaign ended", _day(campaign["ended_at"]), "start of the last run (UTC)"),
        ("campaign load", fixed(campaign["load_average_max"]), "highest load average"),
        ("engine name", campaign["engine"], "engine"),
        ("engine commit", short_commits(campaign["engine_commit"]), "its llama.cpp commit"),
    ]:
        yield Macro((words,), value, meaning)
    for key, value in campaign.items():
        if key.startswith("host_"):
            name, shown = _in_units(key, value)
            yield Macro((name,), shown, f"the machine: {key}")


def _in_units(key: str, value: Any) -> tuple[str, Any]:
    """Return a key without its unit, and its value with it; what is not known is a dash."""
    if pd.isna(value):
        return key.removesuffix("_bytes"), NULL
    if key.endswith("_bytes"):
        return key.removesuffix("_bytes"), memory(value)
    if key.endswith("_bytes_per_second"):
        return key.removesuffix("_bytes_per_second"), bandwidth(value)
    return key, value


def _counts(analysis: Analysis) -> Iterator[Macro]:
    suites = table(analysis, "suites")
    for words, value, meaning in [
        ("campaign suites", len(suites), "suites"),
        ("campaign models", len(analysis.models), "models"),
        ("campaign blocks", thousands(int(suites["blocks"].sum())), "blocks"),
        ("campaign runs", thousands(int(suites["runs"].sum())), "runs"),
        (
            "campaign measured",
            thousands(int(suites["measured"].sum())),
            "runs that gave a measurement",
        ),
    ]:
        yield Macro((words,), value, meaning)
    for row in records(suites):
        yield Macro(("runs suite", row["suite"]), thousands(row["runs"]), f"runs: {row['suite']}")


def _verdicts(analysis: Analysis) -> Iterator[Macro]:
    judged = table(analysis, "claims")
    for verdict in Verdict:
        found = judged[judged["verdict"] == verdict]
        marked = int((found["marked"] > 0).sum())
        yield Macro(("claims", verdict), len(found), f"claims of the study that are {verdict}")
        yield Macro(("claims", verdict, "marked"), marked, "of them, with runs the audit marks")


def _costs(analysis: Analysis) -> Iterator[Macro]:
    bounded = table(analysis, "ceilings")
    above, runs = int(bounded["above"].sum()), int(bounded["runs"].sum())
    yield Macro(("ceiling runs above",), thousands(above), "runs faster than they could have been")
    yield Macro(("ceiling runs",), thousands(runs), "of these runs")
    for row in records(_predicted(analysis)):
        yield Macro(("prediction cells",), row["cells"], "cells that the cost model predicts")
        for column, word in [
            ("median", "median"),
            ("worst", "worst"),
            ("median_1", "equation one"),
            ("median_2", "equation two"),
        ]:
            error = percent(row[column])
            yield Macro(("prediction error", word), error, f"percent: {column.replace('_', ' ')}")


def _predicted(analysis: Analysis) -> pd.DataFrame:
    """Return the errors over all cells of real acceptance: one row, or none."""
    errors = table(analysis, "prediction_errors")
    return errors[errors["suite"] == WHOLE]


def _baseline(row: Record) -> Iterator[Macro]:
    target = row["target"]
    yield Macro(("baseline", target), fixed(row["tokens_per_second"]), f"tok/s: {target}")
    yield Macro(
        ("baseline sd", target), fixed(row["tokens_per_second_sd"]), "its standard deviation"
    )


def _ranges(cells: pd.DataFrame, family: str) -> Iterator[Macro]:
    members = _of_family(cells, family)
    for column, word, unit in [
        ("speedup", "speedup", ""),
        ("acceptance_rate", "acceptance", ", in percent"),
        ("mean_accepted_length", "length", ", tokens per round"),
    ]:
        for end, value in [("min", members[column].min()), ("max", members[column].max())]:
            shown = percent(value) if column == "acceptance_rate" else fixed(value, 2)
            what = f"{end} of {column.replace('_', ' ')} over cells ({family}){unit}"
            yield Macro((word, end, family), shown, what)


def _best(cells: pd.DataFrame, keys: list[str]) -> Iterator[Macro]:
    """Yield the cell of highest speedup for each value of `keys`: the series, or with its draft."""
    for _, members in cells.dropna(subset="speedup").groupby(keys, sort=False):
        best = records(members.nlargest(1, "speedup"))[0]
        words = tuple(best[key] for key in keys)
        what = f"highest speedup: {', '.join(words)}"
        low, high = best["speedup_low"], best["speedup_high"]
        yield Macro(("best speedup", *words), fixed(best["speedup"], 2), what)
        yield Macro(("best interval", *words), interval(low, high), "its interval")
        yield Macro(("best gamma", *words), best["gamma"], "its draft length")
        yield Macro(("best draft", *words), best["draft_label"], "its draft")


def _cell(row: Record) -> Iterator[Macro]:
    words = (row["series"], row["draft"], "gamma", row["gamma"])
    at = f"{row['series']}, {row['draft']}, gamma {row['gamma']}"
    yield Macro(("speedup", *words), fixed(row["speedup"], 2), at)
    yield Macro(("interval", *words), interval(row["speedup_low"], row["speedup_high"]), at)
    yield Macro(("rate", *words), fixed(row["tokens_per_second"]), f"tok/s: {at}")
    yield Macro(("acceptance", *words), percent(row["acceptance_rate"]), f"percent: {at}")


def _day(time: Any) -> str:
    return "" if pd.isna(time) else f"{pd.Timestamp(time):%Y-%m-%d}"
