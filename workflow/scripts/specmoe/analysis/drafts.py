"""What drafted in a campaign: every method, draft model and set of parameters, with its name."""

from collections.abc import Callable

import pandas as pd

from specmoe.config.block import NO_DRAFT
from specmoe.config.draft_labels import draft_label, method_words
from specmoe.config.methods import Method, methods_of

COLUMNS = ["draft", "label", "words", "method", "draft_model"]
_PARAMETERS = ["ngram_gamma", "p_min", "n_min", "n_match", "min_hits"]


def list_drafts(runs: pd.DataFrame, label_of: Callable[[str], str]) -> pd.DataFrame:
    """Return one row per setting of what drafts, in the order of the runs.

    `runs` is `schema.read_runs`'s frame, `label_of` returns a model's label. Columns: draft, label,
    words (the literature's name of the method), method (the engine's types), draft_model (null for
    a method that loads no file).
    """
    drafting = runs[runs["draft"] != NO_DRAFT]
    files = drafting.groupby("method")["draft_model"].nunique()
    rows = []
    for row in drafting.drop_duplicates("draft").to_dict("records"):
        methods, file = methods_of(row["method"]), row["draft_model"]
        named = isinstance(file, str) and (methods == (Method.DRAFT,) or files[row["method"]] > 1)
        parameters = {key: row.get(key) for key in _PARAMETERS}
        known = {key: value for key, value in parameters.items() if not pd.isna(value)}
        rows.append(
            {
                "draft": row["draft"],
                "label": draft_label(methods, label_of(file) if named else None, known),
                "words": method_words(methods),
                "method": row["method"],
                "draft_model": file,
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)
