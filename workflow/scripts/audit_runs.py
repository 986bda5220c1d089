"""Check every run of a campaign: which are impossible, which implausible."""

from pathlib import Path

from specmoe.audit.evidence import Bandwidth, gather_evidence
from specmoe.audit.reading import readings_of
from specmoe.audit.tables import Audit
from specmoe.audit.text import describe_audit
from specmoe.audit.ties import gaps_of
from specmoe.command_line import script
from specmoe.config.matrix import left_out_blocks, list_blocks
from specmoe.config.schema import read_config
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_cards
from specmoe.models.sizes import sizes_of_cards
from specmoe.runs.agreement import read_agreement
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_passes, refuse_other_runs
from specmoe.runs.manifest import check_manifest
from specmoe.runs.pass_times import read_pass_times, seen_experts
from specmoe.runs.schema import read_runs


@script
def main(
    runs: Path,
    config: Path,
    models: Path,
    host: Path,
    out: Path,
    engines: tuple[Path, ...] = (),
    pass_times: Path | None = None,
    agreement: Path | None = None,
    divergences: tuple[Path, ...] = (),
    pack: Path | None = None,
) -> None:
    if pack:
        check_manifest(pack)
    config = read_config(config)
    times = read_pass_times(pass_times)
    sizes = sizes_of_cards(load_cards(models), seen_experts(times))
    with named_if_damaged(host):
        bandwidth = Bandwidth.of(read_record(host))
    gaps = {}
    for file in divergences:
        with named_if_damaged(file):
            gaps |= gaps_of(read_record(file))
    rows = read_runs(runs)
    if config.campaign.source != "published":
        described = Described.read(engines, [models], host)
        remedy = f"{runs} is not the whole campaign: get it, or measure it, again"
        blocks = list_blocks(config, gpu=described.gpu)
        refuse_other_runs(rows.to_dict("records"), config, described, blocks, remedy)
        refuse_other_passes(times, config, described, remedy)
    evidence = gather_evidence(
        rows,
        sizes,
        bandwidth,
        config.audit,
        gaps,
        readings_of(read_agreement(agreement)),
    )
    found = Audit.of(evidence)
    found.write(out)
    text = describe_audit(found.audit, rows, found.power, left_out_blocks(config))
    (out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")
