"""Say whether a claim about speculative decoding can be true, from what is known of it."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.config.audit import AuditSettings
from specmoe.errors import ConfigError
from specmoe.logs.read import read_log
from specmoe.logs.row import COLUMNS as LOGGED
from specmoe.plan.chips import bandwidth_by_chip
from specmoe.possible.claim import claim_of
from specmoe.possible.judge import judge
from specmoe.possible.of_logs import claims_of_log
from specmoe.possible.power import read_power
from specmoe.possible.table import COLUMNS, read_claims, row_of, write_rows
from specmoe.possible.text import describe, describe_rows
from specmoe.words import counted


def main() -> None:
    """Parse the command line, print verdicts, and write those of a file or log as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claim", type=json.loads, default={}, help="facts of one claim or all")
    parser.add_argument("--claims", type=Path, help="a CSV with a claim a line")
    parser.add_argument("--log", type=Path, nargs="+", help="what programs wrote of their runs")
    parser.add_argument("--chips", required=True, type=Path, help="table of known bandwidths")
    parser.add_argument("--power", required=True, type=Path, help="how often bounds refute")
    parser.add_argument("--audit", required=True, help="the audit's tolerances, JSON")
    parser.add_argument("--out", required=True, type=Path, help="folder for tables")
    args = parser.parse_args()
    chips, power = bandwidth_by_chip(args.chips), read_power(args.power)
    settings = AuditSettings.model_validate_json(args.audit)
    if args.claims and args.log:
        raise ConfigError("config: claims: give this or log, not both")
    if not args.claims and not args.log:
        if not args.claim:
            raise ConfigError(
                "config: claim: say what is known, --config claim='{speedup: 1.26, gamma: 16,"
                " acceptance_rate: 0.002}', or give a file: claims=FILE or log=FILE"
            )
        one = claim_of(args.claim, "config: claim", chips)
        print("\n".join(describe(judge(one, settings), power)))
        return
    if args.log:
        logged = [row for file in args.log for row in read_log(file)]
        made = args.out / f"{args.log[0].stem}_rows.csv"
        written = list(write_rows(made, LOGGED, (row.cells() for row in logged)))
        print(f"{made}: {counted(len(written), 'row')}")
        claims = claims_of_log(logged, args.claim, chips)
    else:
        claims = read_claims(args.claims, args.claim, chips)
    rows = (row_of(judge(one, settings)) for one in claims)
    table = args.out / f"{(args.claims or args.log[0]).stem}_verdicts.csv"
    for line in describe_rows(write_rows(table, COLUMNS, rows), power):
        print(line)
    print(table)


if __name__ == "__main__":
    errors.run(main)
