"""What pairs gain with the acceptance of a profile that was measured elsewhere."""

import pandas as pd

from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL, summarise_cells
from specmoe.config.schema import Statistics

_PAIR = ["target", "draft", "gamma"]


def gains_by_profile(
    compared: pd.DataFrame, cells: pd.DataFrame, predicted: pd.DataFrame, settings: Statistics
) -> pd.DataFrame:
    """Return what each cell gained with each profile imposed; without rows where none was.

    `compared` is `with_speedups`'s frame, `cells` are those with their own acceptance, `predicted`
    is `cost_tables.predictions`'s. The speedup under a profile predicts that of a pair whose drafts
    hold as far. Columns: those of the cell, protocol, engine; profile; runs, blocks;
    imposed_acceptance (the mean share that was asked for) and acceptance_rate (the share that came
    of it); tokens_per_round; speedup with its interval; predicted (by the cost model; null without
    one); own_suite, own_acceptance, own_speedup with its interval (of the same target, draft and γ
    with their own acceptance, in the first suite that has them; null without one); ratio (of the
    speedup to that).
    """
    members = compared[compared["imposed_profile"].notna()]
    if members.empty:
        return pd.DataFrame()
    keys = [*CELL, "imposed_profile", "imposed_acceptance"]
    found = summarise_cells(members, settings, keys).rename(columns={"imposed_profile": "profile"})
    if predicted.empty:
        found["predicted"] = float("nan")
    else:
        by_model = predicted[[*CELL, "imposed_acceptance", "predicted"]].drop_duplicates(
            [*CELL, "imposed_acceptance"]
        )
        found = found.merge(by_model, how="left", on=[*CELL, "imposed_acceptance"])
    own = {
        "suite": "own_suite",
        "acceptance_rate": "own_acceptance",
        **{f"speedup{end}": f"own_speedup{end}" for end in ("", "_low", "_high")},
    }
    if cells.empty:
        found = found.assign(**dict.fromkeys(own.values()))
    else:
        measured = cells[[*_PAIR, *own]].rename(columns=own).drop_duplicates(_PAIR)
        found = found.merge(measured, how="left", on=_PAIR)
    ratio = found["speedup"] / found["own_speedup"].astype(float)
    return found.assign(ratio=ratio)[TABLES["profiles"].columns]
