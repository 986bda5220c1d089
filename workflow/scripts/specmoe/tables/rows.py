"""The rows of tables that are more than a choice from one table of the analysis.

Each function of a table's name returns a frame of values that columns format, in order;
`paper/tables.yaml` names the columns. It computes nothing.
"""

import pandas as pd

from specmoe.analysis import filters
from specmoe.analysis.labels import Control
from specmoe.analysis.number_text import percent
from specmoe.analysis.registry import Analysis
from specmoe.audit.checks import CHECKS
from specmoe.audit.evidence import Level
from specmoe.audit.limits import LIMITS
from specmoe.config.models import CELLS

FAMILY_WORDS = {"moe": "MoE", "dense": "dense"}

CONTROLS = {Control.SELF: "drafts for itself", Control.UNRELATED: "unrelated draft"}
# The acceptance rate that a control must reach, or not exceed.
_DUE = {
    Control.SELF: f"≥ {percent(LIMITS.self_acceptance, 0)}",
    Control.UNRELATED: f"≤ {percent(LIMITS.unrelated_acceptance, 0)}",
}


def models(analysis: Analysis) -> pd.DataFrame:
    """Return the models with their roles and rates; a dense one has no experts.

    A model that was measured in several ways has several rates, and none here.
    """
    settings, levels = filters.usual_settings(analysis), analysis.levels
    controls = filters.control_settings(analysis)
    members = {
        "target": {*settings["target"], *levels["target"]},
        "draft": {*settings["draft_model"], *levels["draft_model"]},
        "control": set(controls.loc[controls["control"] == Control.UNRELATED, "draft_model"]),
    }
    frame = analysis.models
    roles = [
        ", ".join(role for role, names in members.items() if model in names) or "baseline"
        for model in frame["model"]
    ]
    rates = analysis.baselines.drop_duplicates("target", keep=False).set_index("target")
    measured = ["tokens_per_second", "tokens_per_second_sd", "prompt_tokens_per_second"]
    return frame.assign(
        family=frame["family"].map(FAMILY_WORDS),
        experts=frame["experts"].where(frame["family"] == "moe"),
        role=roles,
        **{name: frame["model"].map(rates[name]) for name in measured},
    )


def controls(analysis: Analysis) -> pd.DataFrame:
    """Return the controls, with the acceptance that is due, and baselines beside settings."""
    settings = filters.control_settings(analysis)
    control = settings["control"]
    settings = settings.assign(control=control.map(CONTROLS), due=control.map(_DUE))
    beside = analysis.baselines_beside.rename(columns=lambda name: name.replace("ratio", "speedup"))
    if beside.empty:
        return settings
    failed = beside["runs"].where(beside["failed"], 0)
    counts = {"controls_failed": failed, "controls_passed": beside["runs"] - failed}
    beside = beside.assign(control="baselines beside it", due="1×", acceptance_rate=None, **counts)
    return pd.concat([settings, beside], ignore_index=True) if len(settings) else beside


def findings(analysis: Analysis) -> pd.DataFrame:
    """Return what each check of the audit that applies to any run found in all of them."""
    whole = filters.whole_audit(analysis)
    rows = [
        {"check": name.replace("_", " "), "level": check.level.value, "meaning": check.meaning}
        | filters.count_check(whole, name)
        for name, check in sorted(CHECKS.items(), key=lambda one: one[1].level == Level.SUSPICIOUS)
    ]
    return pd.DataFrame(row for row in rows if row["runs"] or row["not_judged"])


def claims(analysis: Analysis) -> pd.DataFrame:
    """Return the study's claims with the campaign's verdicts, those that it cannot test last.

    A campaign that measured in several ways has each claim once for each; `measured_by` is null in
    others.
    """
    judged = analysis.claims
    measured_by = judged.groupby("measured_by", sort=False).ngroup()
    last = judged["comparisons"] == 0
    places = (2 * measured_by + last).sort_values(kind="stable").index
    return judged.loc[places].assign(**({} if measured_by.max() > 0 else {"measured_by": None}))


def comparison(analysis: Analysis) -> pd.DataFrame:
    """Return the study's headline numbers as printed, from its rows, and measured here.

    Numbers that no campaign has are left out. A bound's number has two digits, so that one just
    below it does not print as the bound.
    """
    frame = analysis.comparison
    known = frame[["recomputed", "measured"]].notna().any(axis=1)
    frame = frame[(frame["source"] != CELLS) & known]
    bound = frame["relation"] == "<"
    return frame.assign(
        what=frame["what"].str.replace("acceptance_percent", "acceptance rate (%)"),
        printed=frame["printed"].where(~bound, "< " + frame["printed"]),
        digits=frame["digits"].mask(bound, 2),
    )


def compared_settings(analysis: Analysis) -> pd.DataFrame:
    """Return what the campaigns compared measured, settings of the same prompts together."""
    settings = analysis.compared_settings
    prompts = ", suite " + settings["suite"] + ": " + settings["prompts"]
    prompted = settings["target_label"] + prompts
    return settings.assign(prompted=prompted, series=prompted + settings["draft_label"])
