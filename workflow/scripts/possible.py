"""Say whether a claim about speculative decoding can be true, from what is known of it."""

from pathlib import Path

from specmoe.command_line import script
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


@script
def main(
    chips: Path,
    power: Path,
    audit: str,
    out: Path,
    claim: dict[str, object] | None = None,
    claims: Path | None = None,
    log: tuple[Path, ...] = (),
) -> None:
    bandwidths, powers = bandwidth_by_chip(chips), read_power(power)
    settings = AuditSettings.model_validate_json(audit)
    if claims and log:
        raise ConfigError("config: claims: give this or log, not both")
    if not claims and not log:
        if not claim:
            raise ConfigError(
                "config: claim: say what is known, --config claim='{speedup: 1.26, gamma: 16,"
                " acceptance_rate: 0.002}', or give a file: claims=FILE or log=FILE"
            )
        one = claim_of(claim, "config: claim", bandwidths)
        print("\n".join(describe(judge(one, settings), powers)))
        return
    if log:
        logged = [row for file in log for row in read_log(file)]
        made = out / f"{log[0].stem}_rows.csv"
        written = list(write_rows(made, LOGGED, (row.cells() for row in logged)))
        print(f"{made}: {counted(len(written), 'row')}")
        asked = claims_of_log(logged, claim or {}, bandwidths)
    else:
        asked = read_claims(claims, claim or {}, bandwidths)
    rows = (row_of(judge(one, settings)) for one in asked)
    table = out / f"{(claims or log[0]).stem}_verdicts.csv"
    for line in describe_rows(write_rows(table, COLUMNS, rows), powers):
        print(line)
    print(table)
