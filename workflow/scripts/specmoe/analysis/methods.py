"""Ways of drafting side by side: the cells of targets that a suite measured with several."""

import pandas as pd

from specmoe.analysis.rounds import drafting_share
from specmoe.analysis.summaries import CELL, fastest
from specmoe.config.block import WAY, Protocol


def compare_methods(cells: pd.DataFrame, runs: pd.DataFrame, drafts: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of targets that a suite measured with several methods.

    `cells` is `summarise_cells`'s frame of `runs`, `drafts` is `list_drafts`'s. A chain is a method
    of its own. Columns added: words and setting, see `list_drafts`; drafting_share, see the
    function; best (see `fastest`, among these cells); engine_types (the method's, as a list in
    words).
    """
    if cells.empty:
        return cells
    in_suite = cells.groupby(["suite", "target", *WAY])
    cells = cells[in_suite["method"].transform("nunique").gt(1)]
    share = drafting_share(runs[runs["protocol"] == Protocol.PAIRED])
    named = drafts.set_index("draft")
    return cells.assign(
        words=cells["draft"].map(named["words"]),
        setting=cells["draft"].map(named["setting"]),
        drafting_share=share.reindex(pd.MultiIndex.from_frame(cells[CELL])).to_numpy(float),
        best=fastest(cells),
        engine_types=cells["method"].str.replace(",", ", "),
    ).reset_index(drop=True)
