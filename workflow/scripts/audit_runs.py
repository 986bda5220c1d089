"""Check every run of a campaign: which are impossible, which implausible."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.audit.evidence import Bandwidth, gather_evidence
from specmoe.audit.reading import readings_of
from specmoe.audit.tables import Audit
from specmoe.audit.text import describe_audit
from specmoe.audit.ties import gaps_of
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


def main() -> None:
    """Parse the command line, audit the runs, write the findings and print their summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--models", required=True, type=Path, help="their cards, models.json")
    parser.add_argument("--host", required=True, type=Path, help="host.json")
    parser.add_argument("--engines", type=Path, nargs="*", default=[], help="their descriptions")
    parser.add_argument("--pass-times", type=Path, nargs="?", help="pass_times.parquet, if any")
    parser.add_argument("--agreement", type=Path, nargs="?", help="agreement.parquet, if any")
    parser.add_argument("--divergences", type=Path, nargs="*", default=[], help="judged, by target")
    parser.add_argument("--pack", type=Path, help="folder of the packed campaign, if it is one")
    parser.add_argument("--out", required=True, type=Path, help="folder of the findings")
    args = parser.parse_args()
    if args.pack:
        check_manifest(args.pack)
    config = read_config(args.config)
    pass_times = read_pass_times(args.pass_times)
    sizes = sizes_of_cards(load_cards(args.models), seen_experts(pass_times))
    with named_if_damaged(args.host):
        host = read_record(args.host)
        bandwidth = Bandwidth.of(host)
        of_machines = {one["id"]: Bandwidth.of(one) for one in host.get("machines", [])}
    divergences = {}
    for file in args.divergences:
        with named_if_damaged(file):
            divergences |= gaps_of(read_record(file))
    runs = read_runs(args.runs)
    if config.campaign.source != "published":
        described = Described.read(args.engines, [args.models], args.host)
        remedy = f"{args.runs} is not the whole campaign: get it, or measure it, again"
        blocks = list_blocks(config, gpu=described.gpu)
        refuse_other_runs(runs.to_dict("records"), config, described, blocks, remedy)
        refuse_other_passes(pass_times, config, described, remedy)
    evidence = gather_evidence(
        runs,
        sizes,
        bandwidth,
        config.audit,
        divergences,
        of_machines,
        readings_of(read_agreement(args.agreement)),
    )
    found = Audit.of(evidence)
    found.write(args.out)
    text = describe_audit(found.audit, runs, found.power, left_out_blocks(config))
    (args.out / "audit.txt").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    errors.run(main)
