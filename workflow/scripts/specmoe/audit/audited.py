"""A campaign's runs audited: read, compared with what was asked for, checked, and written."""

from collections.abc import Iterable
from pathlib import Path

from specmoe.audit.evidence import Bandwidth, gather_evidence
from specmoe.audit.reading import readings_of
from specmoe.audit.tables import Audit
from specmoe.audit.text import describe_audit
from specmoe.audit.ties import Gap, gaps_of
from specmoe.config.matrix import left_out_blocks, list_blocks
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_cards
from specmoe.models.sizes import sizes_of_cards
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.agreement import read_agreement
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_passes, refuse_other_runs
from specmoe.runs.manifest import check_manifest
from specmoe.runs.pass_times import read_pass_times, seen_experts
from specmoe.runs.schema import read_runs, row_dicts


def audit_campaign(campaign: LoadedCampaign, engines: Iterable[Path], out: Path) -> None:
    """Write the audit of a campaign to a folder, and print it.

    `engines` describe what measured it. Raises DamagedFileError, SchemaError and MeasurementError
    for rows that are not the campaign's.
    """
    config, data = campaign.config, campaign.data
    if config.campaign.source == "cached":
        check_manifest(data)
    runs, models, host = data / "runs.parquet", data / "models.json", data / "host.json"
    times = read_pass_times(*campaign.pass_times)
    sizes = sizes_of_cards(load_cards(models), seen_experts(times))
    with named_if_damaged(host):
        bandwidth = Bandwidth.of(read_record(host))
    gaps: dict[str, Gap] = {}
    for file in campaign.divergences:
        with named_if_damaged(file):
            gaps |= gaps_of(read_record(file))
    rows = read_runs(runs)
    if config.campaign.source != "published":
        described = Described.read(engines, [models], host)
        remedy = f"{runs} is not the whole campaign: get it, or measure it, again"
        blocks = list_blocks(config, gpu=described.gpu)
        refuse_other_runs(row_dicts(rows), config, described, blocks, remedy)
        refuse_other_passes(times, config, described, remedy)
    readings = readings_of(read_agreement(*campaign.agreement))
    evidence = gather_evidence(rows, sizes, bandwidth, config.audit, gaps, readings)
    found = Audit.of(evidence)
    found.write(out)
    text = describe_audit(found.audit, rows, found.power, left_out_blocks(config))
    (out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")
