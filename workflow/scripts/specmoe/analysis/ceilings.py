"""The largest speedup that a cell could have had at its recorded acceptance."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import CELL, geometric_mean
from specmoe.audit.bounds import draft_time, single_token_ms
from specmoe.audit.finding import Run
from specmoe.config.audit import AuditSettings
from specmoe.config.block import WAY
from specmoe.models.sizes import Size

CEILINGS = [
    *(*WAY, *CELL, "runs", "acceptance_rate", "mean_accepted_length"),
    *("speedup", "ceiling", "above", "draft_basis"),
]


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
    it runs alone. For R rounds in which D tokens were drafted the bound is

        tokens / (R + D * t_draft / t_target),

    per round: mean accepted length / (1 + gamma * t_draft / t_target).

    Columns: CEILINGS. Speedup and ceiling are geometric means over runs, above counts the runs
    whose speedup is above their ceiling, draft_basis says how the draft's time is known.
    Runs whose rounds are not known, and runs of targets that were not timed, are left out.
    """
    times_of = single_token_ms(runs)
    rows = []
    for row in compared.to_dict("records"):
        run = Run.of(row)
        times = times_of.get(run.timed_with, {})
        if not run.rounds or run.drafted is None or run.target not in times:
            continue
        draft = draft_time(run, times, sizes, settings)
        passes = run.rounds + run.drafted * draft.ms / times[run.target]
        identity = (*run.way, run.suite, run.target, run.draft, run.gamma)
        counts = (run.rounds, run.drafted, run.accepted)
        rows.append(
            (*identity, *counts, row["speedup"], (run.timed_tokens or 0) / passes, draft.basis)
        )
    columns = [*WAY, *CELL, "rounds", "drafted", "accepted", "speedup", "ceiling", "draft_basis"]
    return _by_cell(pd.DataFrame(rows, columns=columns))


def _by_cell(rows: pd.DataFrame) -> pd.DataFrame:
    cells = []
    for cell, members in rows.groupby([*WAY, *CELL]):
        drafted, rounds = members["drafted"].sum(), members["rounds"].sum()
        accepted = np.float64(members["accepted"].sum())
        above = members["speedup"] > members["ceiling"]
        cells.append(
            (
                *cell,
                len(members),
                accepted / drafted,
                1 + accepted / rounds,
                geometric_mean(members["speedup"].to_numpy(float)),
                geometric_mean(members["ceiling"].to_numpy(float)),
                int(above.sum()),
                members["draft_basis"].iloc[0],
            )
        )
    return pd.DataFrame(cells, columns=CEILINGS)
