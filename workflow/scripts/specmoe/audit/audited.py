"""A campaign's runs audited: read, compared with what was asked for, checked, and described."""

from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple, Self

import pandas as pd

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import CHECKS, audit_runs, count_power, summarise_audit
from specmoe.audit.evidence import Bandwidth, Evidence, Gap, gaps_of, gather_evidence
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.audit.reading import readings_of
from specmoe.config.block import ASKED, NO_DRAFT, Block
from specmoe.config.matrix import left_out_blocks
from specmoe.errors import MeasurementError, SchemaError
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_cards, size_of_card
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.manifest import check_manifest
from specmoe.runs.other_tables import read_agreement, read_pass_times, seen_experts
from specmoe.runs.schema import DISTURBED, asked_of, excluded, read_runs
from specmoe.words import counted, verb

# Arrow's strings suit long columns; on tables as short as these they take more time.
pd.set_option("mode.string_storage", "python")

WIDTH, INDENT = 100, 24
NAMED = 3


def table_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the Parquet file of each table in a folder; raises SchemaError for one that lacks."""
    files = {name: folder / f"{name}.parquet" for name in names}
    for file in files.values():
        if not file.is_file():
            raise SchemaError(f"{file} is not there; render that campaign again")
    return files


class Audit(NamedTuple):
    """What the audit found: `audit_runs`, `summarise_audit`, `count_power`, `required_time`."""

    audit: pd.DataFrame
    summary: pd.DataFrame
    power: pd.DataFrame
    required_time: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write each table as `<name>.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self._asdict().items():
            table.to_parquet(folder / f"{name}.parquet", index=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote; raises SchemaError for a folder that lacks a table."""
        return cls(*map(pd.read_parquet, table_files(folder, cls._fields).values()))

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Audit the runs of a campaign."""
        found = audit_runs(evidence)
        return cls(found, summarise_audit(found), count_power(evidence), required_time(evidence))


def audit(campaign: LoadedCampaign, out: Path) -> None:
    """Write the audit of a campaign to a folder, and print it.

    A packed campaign is believed by its manifest.
    Raises DamagedFileError, SchemaError and MeasurementError for rows that are not the campaign's.
    """
    config, data = campaign.config, campaign.data
    if config.campaign.source == "cached":
        check_manifest(data)
    runs, models, host = data / "runs.parquet", data / "models.json", data / "host.json"
    times = read_pass_times(*campaign.pass_times)
    cards, seen = load_cards(models), seen_experts(times)
    sizes = {model: size_of_card(card, seen.get(model, ())) for model, card in cards.items()}
    with named_if_damaged(host):
        bandwidth = Bandwidth.of(read_record(host))
    gaps: dict[str, Gap] = {}
    for file in campaign.divergences:
        with named_if_damaged(file):
            gaps |= gaps_of(read_record(file))
    rows = read_runs(runs)
    if config.campaign.source != "published":
        _refuse_other_runs(campaign, rows)
    readings = readings_of(read_agreement(*campaign.agreement))
    evidence = gather_evidence(rows, sizes, bandwidth, config.audit, gaps, readings)
    found = Audit.of(evidence)
    found.write(out)
    text = describe_audit(found, rows, left_out_blocks(config))
    (out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")


def _refuse_other_runs(campaign: LoadedCampaign, rows: pd.DataFrame) -> None:
    """Raise MeasurementError unless the rows are the runs of the campaign's blocks.

    An overlay may ask for more of a packed campaign than it has.
    """
    blocks = filter(None, map(campaign.asked, campaign.blocks))
    asked = {run for block in blocks for run in block.asked}
    found = {*asked_of(rows)}
    for fault, runs in {"lacks": asked - found, "has, unasked,": found - asked}.items():
        if runs:
            one = ", ".join(
                f"{name} {value}" for name, value in zip(ASKED, min(runs, key=str), strict=True)
            )
            raise MeasurementError(
                f"{campaign.data / 'runs.parquet'} {fault} {counted(len(runs), 'run')} of campaign"
                f" {campaign.config.campaign.name} ({one}): give the configuration with which"
                " it was packed, or measure it again"
            )


def describe_audit(found: Audit, runs: pd.DataFrame, left_out: Sequence[Block] = ()) -> str:
    """Return as text the checks, how many rows fail each one, the worst rows, and the power.

    `left_out` are the blocks that were not measured on purpose.
    """
    whole = found.summary.iloc[-1]
    parts = [*_head(found.audit, whole, runs, left_out), ""]
    for level in Level:
        parts += [f"{level.capitalize()} if it fails:", *_checks(found.audit, level), ""]
    return "\n".join([*parts, *_power(found.power)]) + "\n"


def _head(
    audit: pd.DataFrame, whole: pd.Series, runs: pd.DataFrame, left_out: Sequence[Block]
) -> list[str]:
    campaigns, drafted = ", ".join(runs["campaign"].unique()), (runs["draft"] != NO_DRAFT).sum()
    lines = [f"Audit of campaign {campaigns}: {counted(len(runs), 'row')}, {drafted} with a draft"]
    found = [(level, whole[level]) for level in Level]
    lines += [
        ", ".join(
            f"{counted(count, 'row') if count else 'no row'} {verb(max(count, 1))} {level}"
            for level, count in found
        )
    ]
    if left_out:
        count, named = sum(one.runs for one in left_out), ", ".join(one.block for one in left_out)
        lines.append(
            f"{counted(count, 'row')} {verb(count)} not there, left out on purpose: {named}"
        )
    if disturbed := runs.loc[runs["taken_away"].notna(), "run"].tolist():
        named = ", ".join(disturbed[:NAMED]) + (", ..." if len(disturbed) > NAMED else "")
        line = (
            f"{len(excluded(runs))} rows are in no estimate: {DISTURBED} at every attempt during"
            f" {len(disturbed)} of them ({named}), the others are compared with these"
        )
        lines += wrap(line, WIDTH, subsequent_indent="  ")
    if recovered := audit.loc[audit["recovered"], "run"].nunique():
        lines.append(f"{counted(recovered, 'row')} with values recovered by arithmetic")
    failed, passed = whole["controls_failed"], whole["controls_passed"]
    rows = counted(failed + passed, "row")
    if failed:
        lines.append(f"Controls: FAILED, {failed} of {rows}; do not trust the others")
    elif passed:
        lines.append(f"Controls: passed, {rows}")
    return lines


def _checks(audit: pd.DataFrame, level: Level) -> list[str]:
    lines = []
    for name, check in CHECKS.items():
        if check.level != level:
            continue
        members = audit[audit["check"] == name].sort_values("ratio", ascending=False, kind="stable")
        passed, failed, _, unjudged = (
            members[members["verdict"] == verdict] for verdict in CheckVerdict
        )
        outcome = _outcome(members, len(passed), len(failed), len(unjudged))
        # Identical runs have no gap to measure.
        if name == "losslessness" and (ties := passed["measured"].notna().sum()):
            outcome += f"; {ties} diverge at a near tie"
        line = f"{check.words + ':':<{INDENT}}{outcome}"
        lines += wrap(line, WIDTH, subsequent_indent=" " * INDENT)
        named = pd.concat([failed.head(NAMED), unjudged.head(NAMED)])
        for run, why in named[["run", "why"]].itertuples(index=False):
            lines += wrap(f"{run}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def _outcome(members: pd.DataFrame, passed: int, failed: int, unjudged: int) -> str:
    applicable = passed + failed + unjudged
    if not applicable:
        reasons = members["why"].value_counts()
        most = ", for most rows" if len(reasons) > 1 else ""
        return f"not applicable{most}: {reasons.index[0]}"
    rest = f"; {unjudged} NOT JUDGED" if unjudged else ""
    rest += f"; {len(members) - applicable} not applicable" if applicable < len(members) else ""
    worst, rows = members["ratio"].max(), counted(applicable, "row")
    if failed:
        over = f", the worst by a factor of {worst:.1f}" if isfinite(worst) else ""
        return f"{failed} of {rows} {verb(failed, 'fails', 'fail')} it{over}{rest}"
    # A check of equality has no distance to its bound; a value of zero has none either.
    nearest = f", the nearest at {worst:.2f} of the bound" if 0 < worst < 1 else ""
    return f"{passed} of {rows} {verb(passed, 'passes', 'pass')}{nearest}{rest}"


def _power(power: pd.DataFrame) -> list[str]:
    """Return what the audit would find in these rows, had they been too fast."""
    runs = int(power["runs"].max())
    if not runs:
        return []
    unbounded = int(power["unbounded"].max())
    factors = power.loc[power["factor"] > 1, "factor"].unique()
    lines = [
        f"No bound of time applies to {unbounded} of {counted(runs, 'row')} with a draft.",
        "Had these rows been made too fast, the audit would have found them impossible (and marked"
        " in all):",
        " " * 16 + "".join(f"{factor:g} times".ljust(14) for factor in factors),
    ]
    for forged, rows in power[power["factor"] > 1].groupby("forged", sort=False):
        marked = rows["impossible"] + rows["implausible"]
        found = zip(rows["impossible"] / runs, marked / runs, strict=True)
        shares = [f"{impossible:.0%} ({whole:.0%})" for impossible, whole in found]
        lines.append(f"  {forged:<14}" + "".join(share.ljust(14) for share in shares).rstrip())
    return lines
