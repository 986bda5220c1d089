"""The audit of a campaign: its runs are read, compared with the configuration, and checked."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import pandas as pd

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, count_sensitivity, mostly_missed, summarise_audit
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.audit.evidence import CheckVerdict, Evidence, Gap, gaps_of, known_bandwidth
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress
from specmoe.config.block import ASKED, Block
from specmoe.config.matrix import excluded_blocks
from specmoe.errors import MeasurementError, SchemaError
from specmoe.files import ROOT, named_if_damaged, read_record
from specmoe.models.info import load_infos
from specmoe.runs.other_tables import read_agreement, read_pass_times, sizes_of
from specmoe.runs.schema import disturbed_beyond_usual, excluded, read_runs
from specmoe.runs.shipped import check_manifest
from specmoe.text import counted, fill_template

# Arrow's strings suit long columns; on tables as short as these they take more time.
pd.set_option("mode.string_storage", "python")


def table_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the Parquet file of each table in a folder; raises SchemaError for one that lacks."""
    files = {name: folder / f"{name}.parquet" for name in names}
    for file in files.values():
        if not file.is_file():
            raise SchemaError(f"{file} is not there; render that campaign again")
    return files


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write the Parquet file of each table in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)


class Audit(NamedTuple):
    """The tables of the audit, of `checks` and `bounds`."""

    audit: pd.DataFrame
    summary: pd.DataFrame
    sensitivity: pd.DataFrame
    required_time: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `audit` wrote; raises SchemaError for a folder that lacks a table."""
        return cls(*map(pd.read_parquet, table_files(folder, cls._fields).values()))

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Audit the runs of a campaign."""
        checked = audit_runs(evidence)
        return cls(
            checked, summarise_audit(checked), count_sensitivity(evidence), required_time(evidence)
        )


def audit(campaign: LoadedCampaign) -> None:
    """Write the audit of a campaign, and print it in a few lines.

    A shipped campaign is checked by its manifest.
    Raises DamagedFileError, SchemaError and MeasurementError for rows that are not the campaign's.
    """
    config, data, out = campaign.config, campaign.places.data, campaign.places.folder / "audit"
    if config.campaign.source == "shipped":
        check_manifest(data)
    infos, machine = load_infos(data / "models.json"), data / "machine.json"
    passes = read_pass_times(*campaign.table("pass_times"))
    sizes = sizes_of(infos, passes)
    with named_if_damaged(machine):
        bandwidth, rates = known_bandwidth(read_record(machine), passes, sizes)
    gaps: dict[str, Gap] = {}
    for file in campaign.divergences:
        with named_if_damaged(file):
            gaps |= gaps_of(read_record(file))
    rows = read_runs(data / "runs.parquet")
    if config.campaign.source != "study_rows":
        _refuse_other_runs(campaign, rows)
    scores = scores_by_run(read_agreement(*campaign.table("agreement")))
    restored = {model for model, info in infos.items() if info.restored}
    evidence = Evidence(
        rows, sizes, bandwidth, config.audit, gaps, scores, restored=restored, rates=rates
    )
    checked = Audit.of(evidence)
    write_tables(out, checked._asdict())
    text, details = describe_audit(checked, rows, excluded_blocks(config)), out / "audit.txt"
    details.write_text(text, encoding="utf-8")
    print(text.partition("\n\n")[0], f"details: {details}", sep="\n")


def _refuse_other_runs(campaign: LoadedCampaign, rows: pd.DataFrame) -> None:
    """Raise MeasurementError unless the rows are the runs of the campaign's blocks.

    An overlay may ask for more of a shipped campaign than it has.
    """
    progress = Progress(campaign)
    blocks = filter(None, map(progress.remaining, progress.measured_blocks))
    requests = rows[ASKED].astype(object)
    measured = {*requests.where(requests.notna(), None).itertuples(index=False, name=None)}
    asked = {run for block in blocks for run in block.asked}
    if wrong := asked ^ measured:
        run = min(wrong, key=str)
        named = ", ".join(f"{name} {value}" for name, value in zip(ASKED, run, strict=True))
        table = campaign.places.data / "runs.parquet"
        raise MeasurementError(
            f"{table} {'lacks' if run in asked else 'has, unasked,'}"
            f" {counted(len(wrong), 'run')} of campaign {campaign.config.campaign.name} ({named}):"
            " give the configuration with which it was packed, or measure it again"
        )


def describe_audit(checked: Audit, rows: pd.DataFrame, unmeasured: Sequence[Block] = ()) -> str:
    """Return the audit of rows as text: a summary, a blank line, and what every check found.

    `unmeasured` are the blocks that the configuration excludes.
    """
    return fill_template(
        ROOT / "paper/audit.txt.j2",
        campaigns=rows["campaign"].unique(),
        counts=checked.summary.iloc[-1],
        checks=[_describe_check(*group) for group in checked.audit.groupby("check", sort=False)],
        flagged=checked.sensitivity.set_index("factor")["flagged_decoding"].to_dict(),
        missed=mostly_missed(checked.sensitivity),
        unmeasured=unmeasured,
        disturbed=rows.loc[disturbed_beyond_usual(rows), "run"].tolist(),
        excluded=len(excluded(rows)),
        table=_table(checked.audit),
    )


def _describe_check(check: object, rows: pd.DataFrame) -> dict[str, Any]:
    """Return how many runs fail a check or are not judged, the worst, and why some are not."""
    verdicts = rows["verdict"]
    unjudged = rows.loc[verdicts == CheckVerdict.NOT_JUDGED, "why"]
    whys = unjudged.str.partition("; ")[2] if len(unjudged) else rows["why"]
    unknown = len(unjudged) or rows["ratio"].isna().all()
    return {
        "name": str(check).replace("_", " "),
        "failed": (verdicts == CheckVerdict.FAIL).sum(),
        "worst": rows.sort_values("ratio", ascending=False, kind="stable").iloc[0],
        "unjudged": len(unjudged),
        "reason": whys.value_counts().index[0] if unknown else "",
    }


def _table(audit: pd.DataFrame) -> str:
    """Return how many runs each check passes, fails and leaves, and its largest ratio."""
    by = [audit["level"], audit["check"]]
    table = pd.crosstab(by, audit["verdict"]).reindex(columns=[*CheckVerdict], fill_value=0)
    table["value / bound"] = audit["ratio"].groupby(by).max()
    return table.rename_axis(columns=None).to_string(float_format="{:.2f}".format, na_rep="")
