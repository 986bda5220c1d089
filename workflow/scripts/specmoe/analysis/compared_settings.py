"""Settings that several campaigns measured: the same target, draft, γ and prompts side by side.

Every number is of one campaign: nothing is averaged over campaigns, suites, engines or protocols.
"""

from collections.abc import Sequence

import pandas as pd

from specmoe.analysis.filters import usual_settings
from specmoe.analysis.labels import protocols
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.analysis.summaries import SETTING
from specmoe.config.block import MEASURED_BY, PASSAGE_PREFIX

# Settings over the same prompts can be compared; `split` separates the suites of one campaign.
_PROMPTED = ["target_label", "prompts", "split"]
_SETTING = [*_PROMPTED, "draft_label", "gamma"]
_CONDITIONS = [
    *("engine_commit", "backend", "machine_chip", "machine_gpu"),
    *("synthetic", "n_predict", "temperature", "repeats", "engine_options"),
]


def compared_settings(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return a row for each setting and heading, settings of several campaigns first.

    A setting is a target and a draft (by label), a γ and the prompts (by name). Where one campaign
    measured it in several suites, the settings of its target and prompts are split by suite. A
    heading is a campaign; one that measured by several protocols has a heading for each. Controls
    and runs of forced acceptance are not compared.

    Columns, besides those of `summarise` that are kept: heading, campaign, target_label,
    draft_label, prompts, suite (all that measured a target over these prompts), campaigns (how many
    measured the setting), same_files (whether these have the same files of target and draft, as
    far as digests are known; null for a single campaign), flagged (runs that the audit flags).
    Without rows for a single analysis.
    """
    if len(analyses) < 2:
        return pd.DataFrame()
    settings = pd.concat([_settings(analysis) for analysis in analyses], ignore_index=True)
    if settings.empty:
        return pd.DataFrame()
    settings["split"] = ""
    repeated = settings.duplicated(["heading", *_SETTING], keep=False)
    prompted = pd.MultiIndex.from_frame(settings[_PROMPTED])
    settings["split"] = settings["suite"].where(prompted.isin(prompted[repeated]), "")
    settings["suite"] = settings.groupby(_PROMPTED)["suite"].transform(
        lambda suites: ", ".join(dict.fromkeys(suites))
    )
    setting = settings.groupby(_SETTING)
    settings["campaigns"] = setting["campaign"].transform("nunique")
    same = setting["files"].transform(lambda own: own.notna().all() and own.nunique() == 1)
    settings["same_files"] = same.astype(object).where(settings["campaigns"] > 1, None)
    # A target's settings over the same prompts stay together, then follow the order of all tables.
    labels = dict.fromkeys(label for analysis in analyses for label in _labels(analysis))
    ranks = {label: rank for rank, label in enumerate(labels)}
    settings = settings.assign(
        single=settings.groupby(_PROMPTED)["campaigns"].transform("max") == 1,
        target_rank=settings["target_label"].map(ranks),
        draft_rank=settings["draft_label"].map(ranks),
    )
    order = ["single", "target_rank", "suite", "prompts", "draft_rank", "gamma"]
    settings = settings.sort_values(order, kind="stable", ignore_index=True)
    return settings[TABLES["compared_settings"].columns]


def compared_campaigns(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return a row for each heading of `compared_settings`: what its campaign ran on, and how.

    Columns: those of TABLES; settings counts its own. Without rows for a single analysis.
    """
    if len(analyses) < 2:
        return pd.DataFrame()
    headings = pd.concat(map(_headings, analyses), ignore_index=True)
    return headings[TABLES["compared_campaigns"].columns]


def _settings(analysis: Analysis) -> pd.DataFrame:
    """Return a campaign's settings with the columns that settings of several campaigns have."""
    settings = protocols(usual_settings(analysis))
    labels, unit = _labels(analysis), str(analysis.campaign["length_unit"].iloc[0])
    digests = analysis.models.set_index("model")["sha256"]
    drafts = settings["draft_model"].map(digests).fillna("nothing")
    flagged = analysis.flagged.groupby(SETTING)["flagged"].sum().rename("flagged")
    own = ": " + settings["measured_by"]
    return settings.merge(flagged, how="left", left_on=SETTING, right_index=True).assign(
        campaign=analysis.name,
        heading=analysis.name + (own if own.nunique() > 1 else own.str[:0]),
        prompts=[_prompts(texts, unit) for texts in settings["texts"]],
        target_label=settings["target"].map(labels),
        draft_label=settings["draft"].map(labels).fillna(settings["draft_label"]),
        files=settings["target"].map(digests) + " " + drafts,
    )


def _headings(analysis: Analysis) -> pd.DataFrame:
    settings = _settings(analysis)
    campaign = analysis.campaign.reindex(columns=["campaign", *MEASURED_BY, *_CONDITIONS])
    campaign["engine_options"] = campaign["engine_options"].replace("", None)
    if settings.empty:
        return campaign.assign(heading=analysis.name, settings=0)
    headings = settings.groupby(["campaign", "heading", *MEASURED_BY], sort=False)
    counted = headings.size().reset_index(name="settings")
    return counted.merge(campaign.drop(columns=MEASURED_BY), on="campaign", validate="m:1")


def _labels(analysis: Analysis) -> "pd.Series[str]":
    """Return the models' labels by id; labels that several models share have the id added."""
    models = analysis.models
    shared = models["label"].duplicated(keep=False)
    words = models["label"].where(~shared, models["label"] + " (" + models["model"] + ")")
    return words.set_axis(models["model"])


def _prompts(texts: Sequence[str], unit: str) -> str:
    """Return words for prompts: texts by name, starts of the passage by length in a unit."""
    named = [text for text in texts if not text.startswith(PASSAGE_PREFIX)]
    lengths = sorted(int(text.removeprefix(PASSAGE_PREFIX)) for text in {*texts} - {*named})
    return ", ".join([*named, *([f"{', '.join(map(str, lengths))} {unit}"] if lengths else [])])
