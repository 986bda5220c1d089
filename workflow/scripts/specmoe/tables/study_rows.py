"""The rows of the tables that compare a campaign with the published study or other campaigns."""

import pandas as pd

from specmoe.analysis.number_text import fixed
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.claims.judge import Verdict
from specmoe.config.study import CELLS
from specmoe.tables.rows import Rows, set_beside, short_commits


def reported(analysis: Analysis) -> pd.DataFrame:
    """Return, for each place of the published study, how many of its numbers its rows give."""
    by_place = analysis.reported.groupby("source", sort=False, as_index=False)
    return by_place.agg(cells=("equal", "size"), equal=("equal", "sum"))


def differences(analysis: Analysis) -> Rows:
    """Return the numbers of the published study that its rows do not give."""
    frame = analysis.reported
    rows = records(frame[~frame["equal"].astype(bool)])
    for row in rows:
        row["recomputed"] = fixed(row["recomputed"], max(int(row["digits"]), 2))
    return Rows(rows)


def claims(analysis: Analysis) -> Rows:
    """Return the study's claims with the campaign's verdicts.

    Those that it cannot test come last. A campaign that measured in several ways has each claim
    once for each way; `way` is null in others.
    """
    judged = analysis.claims
    several = judged["way"].nunique() > 1
    rows = []
    for way, members in judged.groupby("way", sort=False):
        untested = members["verdict"] == Verdict.NOT_TESTABLE
        ordered = pd.concat([members[~untested], members[untested]])
        rows += records(ordered.assign(way=way if several else None))
    return Rows(rows)


def comparison(analysis: Analysis) -> Rows:
    """Return the study's cells as printed, from its rows, and measured here.

    Cells that no campaign has a number for are left out.
    """
    frame = analysis.comparison
    labels = analysis.models.set_index("model")["label"].to_dict()
    cells: dict[str, Record] = {}
    known = set()
    for number in records(frame[frame["source"] == CELLS]):
        quantity, cell = number["what"].split(" ", 1)
        target, draft, gamma = cell.split()
        row = cells.setdefault(
            cell,
            {
                "label": labels.get(target, target),
                "draft_label": labels.get(draft, draft),
                "gamma": int(gamma),
            },
        )
        for key, text in _compared(number).items():
            row[f"{quantity}_{key}"] = text
        if _is_known(number):
            known.add(cell)
    return Rows([row for cell, row in cells.items() if cell in known])


def headline(analysis: Analysis) -> Rows:
    """Return the study's headline numbers as printed, from its rows, and measured here.

    Numbers that no campaign has are left out.
    """
    frame = analysis.comparison
    rows = []
    for number in records(frame[frame["source"] != CELLS]):
        if _is_known(number):
            what = number["what"].replace("acceptance_percent", "acceptance rate (%)")
            rows.append({"what": what} | _compared(number))
    return Rows(rows)


def compared_campaigns(analysis: Analysis) -> pd.DataFrame:
    """Return the campaigns that are set side by side, each with what it ran on."""
    frame = analysis.compared_campaigns
    return frame.assign(engine_commit=frame["engine_commit"].map(short_commits))


def side_by_side(analysis: Analysis) -> Rows:
    """Return the settings of all campaigns compared: for each, one cell (or None) per campaign.

    `other_files` says that the campaigns are not known to have the same files of its models.
    """
    frame = analysis.side_by_side
    headings = analysis.compared_campaigns["heading"]
    prompted = frame.groupby(["target_label", "prompts", "suite"], sort=False).ngroup()
    frame = frame.assign(prompted=prompted, other_files=frame["same_files"].eq(False))
    frame = frame.sort_values("prompted", kind="stable")
    groups = frame.groupby(["prompted", "draft_label", "gamma"], sort=False)
    rows = set_beside(groups, "heading", headings)
    for row in rows:
        row["label"] = row["target_label"]
        row["setting"] = f"{row['label']}, suite {row['suite']}: {row['prompts']}"
    return Rows(rows, of=[*headings])


def _is_known(number: Record) -> bool:
    return bool(pd.notna(number["recomputed"]) or pd.notna(number["measured"]))


def _compared(number: Record) -> Record:
    """Return a number as printed, and from both campaigns at the printed digits.

    A bound's number has two digits, so that one just below it does not print as the bound.
    """
    bound = number["relation"] == "<"
    digits = 2 if bound else int(number["digits"])
    return {
        "printed": f"< {number['printed']}" if bound else number["printed"],
        "recomputed": fixed(number["recomputed"], digits),
        "measured": fixed(number["measured"], digits),
    }
