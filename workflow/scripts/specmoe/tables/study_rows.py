"""The rows of the tables that compare a campaign with the published study or other campaigns."""

import pandas as pd

from specmoe.analysis.number_text import fixed
from specmoe.analysis.registry import Analysis, records
from specmoe.claims.judge import Verdict
from specmoe.config.models import CELLS
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
    """Return the study's numbers as printed, from its rows, and measured here, headlines first.

    Numbers that no campaign has are left out. A bound's number has two digits, so that one just
    below it does not print as the bound.
    """
    frame = analysis.comparison
    frame = frame[frame["recomputed"].notna() | frame["measured"].notna()]
    labels = {
        name: label
        for table, column in ((analysis.models, "model"), (analysis.drafts, "draft"))
        for name, label in zip(table[column], table["label"], strict=True)
    }
    of_cells = frame["source"] == CELLS
    rows = records(pd.concat([frame[~of_cells], frame[of_cells]]))
    for row in rows:
        bound = row["relation"] == "<"
        digits = 2 if bound else int(row["digits"])
        if row["source"] == CELLS:
            quantity, target, draft, gamma = row["what"].split()
            target, draft = labels.get(target, target), labels.get(draft, draft)
            row["what"] = f"{quantity}: {target}, {draft}, γ = {gamma}"
        row["what"] = row["what"].replace("acceptance_percent", "acceptance rate (%)")
        row["printed"] = f"< {row['printed']}" if bound else row["printed"]
        row |= {key: fixed(row[key], digits) for key in ("recomputed", "measured")}
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
