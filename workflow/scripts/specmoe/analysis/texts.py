"""What the texts of runs are: how far they repeat themselves, loop, and go on past their end.

Text that repeats itself is easy to draft, and forced text soon does. A speedup on it says nothing
about text that people read.
"""

import math

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import CELL
from specmoe.audit.repetition import looping, repetition


def text_shares(runs: pd.DataFrame) -> dict[str, float]:
    """Return repetition, looping and past_end of the texts of runs.

    - repetition, looping: mean of the runs' `repetition.repetition` and `repetition.looping`; null
      where no tokens are known.
    - past_end: share of the generated tokens that are past the target's own end, over the runs of
      which that is known; null where it is known of none.
    """
    texts = [tuple(tokens) for tokens in runs["tokens"] if tokens is not None]
    known = runs[runs["past_end"].notna()]
    return {
        "repetition": float(np.mean([repetition(text) for text in texts])) if texts else math.nan,
        "looping": float(np.mean([looping(text) for text in texts])) if texts else math.nan,
        "past_end": known["past_end"].sum() / known["generated"].sum() if len(known) else math.nan,
    }


def with_texts(cells: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of `summarise_cells` with `text_shares` of their runs.

    `compared` is the frame that the cells are of; cells without rows stay as they are.
    """
    if cells.empty:
        return cells
    shares = {cell: text_shares(runs) for cell, runs in compared.groupby(CELL)}
    own = [shares[cell] for cell in cells[CELL].itertuples(index=False, name=None)]
    return cells.assign(**pd.DataFrame(own, index=cells.index))
