"""Say whether a claim about speculative decoding can be true, from what is known of it."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.audit import AuditSettings
from specmoe.errors import ConfigError
from specmoe.plan.chips import bandwidth_by_chip
from specmoe.possible.claim import claim_of
from specmoe.possible.judge import judge
from specmoe.possible.power import read_power
from specmoe.possible.table import COLUMNS, read_claims, row_of, write_rows
from specmoe.possible.text import describe, describe_rows


@script
def main(
    chips: Path,
    power: Path,
    audit: str,
    out: Path,
    claim: dict[str, object] | None = None,
    claims: Path | None = None,
) -> None:
    bandwidths, powers = bandwidth_by_chip(chips), read_power(power)
    settings = AuditSettings.model_validate_json(audit)
    if not claims:
        if not claim:
            raise ConfigError(
                "config: claim: say what is known, --config claim='{speedup: 1.26, gamma: 16,"
                " acceptance_rate: 0.002}', or give a file: claims=FILE"
            )
        one = claim_of(claim, "config: claim", bandwidths)
        print("\n".join(describe(judge(one, settings), powers)))
        return
    rows = (row_of(judge(one, settings)) for one in read_claims(claims, claim or {}, bandwidths))
    table = out / f"{claims.stem}_verdicts.csv"
    for line in describe_rows(write_rows(table, COLUMNS, rows), powers):
        print(line)
    print(table)
