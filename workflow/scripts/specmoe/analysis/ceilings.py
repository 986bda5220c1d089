"""The largest speedup that a cell could have had at its recorded acceptance."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL, by_group, geometric_mean
from specmoe.audit.bounds import draft_time
from specmoe.audit.evidence import single_token_ms
from specmoe.audit.finding import Run
from specmoe.audit.limits import time_needed
from specmoe.config.audit import AuditSettings
from specmoe.config.block import MEASURED_BY
from specmoe.models.card import Size


def ceilings(
    compared: pd.DataFrame,
    runs: pd.DataFrame,
    sizes: Mapping[str, Size],
    settings: AuditSettings,
) -> pd.DataFrame:
    """Return, for each cell, its speedup beside the largest it could have had.

    `compared` is `summaries.with_speedups`'s frame, `runs` has the runs without a draft that time
    target and draft. The bound favours the run: a pass of any width costs no more than one of a
    single token, replays and the time between passes cost nothing, and the draft drafts as fast as
    it runs alone, or at no cost if it was not timed. For S steps (`Run.steps`: rounds, and passes
    without a draft, which are most of an n-gram's) and D drafted tokens the bound is

        tokens / (S + D * t_draft / t_target).

    tokens_per_step counts accepted tokens and replays, and is the ceiling of a draft at no cost.
    acceptance_rate is null where nothing was drafted. Speedup and ceiling are
    geometric means over runs. draft_basis says how the draft's time is known.

    above counts the runs that took less time than S passes and D drafted tokens at their models'
    fastest, less the audit's tolerance for timing. It does not compare speedups: a run whose
    baseline was slowed has a speedup above its ceiling, however slow it is itself.

    Runs whose counts are not known, and runs of targets that were not timed, are left out.
    """
    times_of = single_token_ms(runs)
    rows = []
    for row in compared.to_dict("records"):
        run = Run.of(row)
        times = times_of.get(run.timed_with, {})
        if run.rounds is None or run.drafted is None or run.decode_ms is None:
            continue
        if not run.steps or run.target not in times:
            continue
        draft = draft_time(run, times, sizes, settings)
        passes = time_needed(run.steps, run.drafted, 1, draft.ms / times[run.target])
        fastest_ms = passes * times[run.target] * (1 - settings.time_tolerance)
        tokens = run.timed_tokens or 0
        identity = (*run.way, run.suite, run.target, run.draft, run.gamma)
        counts = (tokens, run.steps, run.drafted, run.accepted)
        above = run.decode_ms < fastest_ms
        rows.append((*identity, *counts, row["speedup"], tokens / passes, above, draft.basis))
    cell, counted = [*MEASURED_BY, *CELL], ["tokens", "steps", "drafted", "accepted"]
    found = pd.DataFrame(
        rows, columns=[*cell, *counted, "speedup", "ceiling", "above", "draft_basis"]
    )
    return by_group(found, cell, _summarised, TABLES["ceilings"].columns)


def _summarised(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    drafted = runs["drafted"].sum()
    yield {
        "runs": len(runs),
        "acceptance_rate": runs["accepted"].sum() / drafted if drafted else np.nan,
        "tokens_per_step": runs["tokens"].sum() / runs["steps"].sum(),
        "speedup": geometric_mean(runs["speedup"].to_numpy(float)),
        "ceiling": geometric_mean(runs["ceiling"].to_numpy(float)),
        "above": int(runs["above"].sum()),
        "draft_basis": runs["draft_basis"].iloc[0],
    }
