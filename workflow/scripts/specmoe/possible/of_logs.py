"""The claims that another program's log makes: its runs with a draft against those without."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import LogRow
from specmoe.possible.claim import Claim, claim_of

_LEAST_MS = 0.01  # of a claim's `draft_ms`


def claims_of_log(
    rows: Sequence[LogRow], more: Mapping[str, Any], chips: Mapping[str, float]
) -> Iterator[Claim]:
    """Yield a claim for each row with a draft, or for each row of a log without any.

    The baseline is the mean speed of the rows without a draft of the same model, and of the same
    prompt where there are some. `more` has facts that the log lacks; those in the log stay.
    """
    timed = [row for row in rows if row.tokens_per_second or row.speculates]
    if not timed:
        raise SchemaError(f"{rows[0].place}: no row has a speed or a draft")
    drafting = [row for row in timed if row.speculates]
    plain = [row for row in timed if not row.speculates and row.tokens_per_second]
    for row in drafting or plain:
        facts = _drafting(row, plain) if drafting else _plain(row)
        known = {name: value for name, value in facts.items() if value is not None}
        yield claim_of(dict(more) | known, row.place, chips)


def _plain(row: LogRow) -> dict[str, Any]:
    return {
        "name": row.place,
        "baseline_tokens_per_second": row.tokens_per_second,
        "weights_gb": row.size_bytes and row.size_bytes / 1e9,
        "requests": row.concurrency,
    }


def _drafting(row: LogRow, plain: Sequence[LogRow]) -> dict[str, Any]:
    alike = [one for one in plain if one.model == row.model and one.concurrency == row.concurrency]
    same = [one for one in alike if one.prompt == row.prompt] or alike
    speeds = [one.tokens_per_second for one in same if one.tokens_per_second]
    drafted = row.rounds and row.drafted and row.drafted / row.rounds
    draft_ms = row.drafted and row.draft_ms and row.draft_ms / row.drafted
    return _plain(row) | {
        "baseline_tokens_per_second": fmean(speeds) if speeds else None,
        "claimed_tokens_per_second": row.tokens_per_second or None,
        "gamma": row.gamma,
        "drafted_per_round": drafted or None,
        "acceptance_rate": row.acceptance_rate,
        "tokens_per_round": row.tokens_per_round,
        # Looking n-grams up takes microseconds.
        "draft_ms": 0 if draft_ms is not None and draft_ms < _LEAST_MS else draft_ms,
    }
