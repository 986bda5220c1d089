"""What drafted in a campaign: every method, draft model and set of parameters, with its name."""

from collections.abc import Callable

import pandas as pd

from specmoe.config.block import NO_DRAFT, History
from specmoe.config.methods import (
    PARAMETERS,
    Method,
    draft_label,
    method_words,
    methods_of,
    setting_label,
)


def list_drafts(runs: pd.DataFrame, label_of: Callable[[str], str]) -> pd.DataFrame:
    """Return one row per setting of what drafts, in the order of the runs.

    `runs` is `schema.read_runs`'s frame, `label_of` returns a model's label. Columns: draft, label,
    drafter (the label without parameters), words (the literature's name of the method), setting
    (the rest of the label, its file and parameters; null if there are none), method (the engine's
    types), draft_model (null for a method that loads no file).

    A file is named if it is a draft model, or if a target has the same method with another file or
    with none.
    """
    drafting = runs[runs["draft"] != NO_DRAFT]
    files = drafting.groupby(["method", "target"])["draft_model"].nunique(dropna=False)
    most = files.groupby("method").max() if len(files) else files
    rows = []
    for row in drafting.drop_duplicates("draft").to_dict("records"):
        methods, file = methods_of(row["method"]), row["draft_model"]
        named = isinstance(file, str) and (methods == (Method.DRAFT,) or most[row["method"]] > 1)
        file_label = label_of(file) if named else None
        parameters = {key: row.get(key) for key in PARAMETERS}
        known = {key: value for key, value in parameters.items() if not pd.isna(value)}
        if row["draft"].endswith(f"-{History.EARLIER}"):  # rows have no column of it
            known["history"] = History.EARLIER
        rows.append(
            {
                "draft": row["draft"],
                "label": draft_label(methods, file_label, known),
                "drafter": draft_label(methods, file_label, {}),
                "words": method_words(methods),
                "setting": setting_label(methods, file_label, known),
                "method": row["method"],
                "draft_model": file,
            }
        )
    return pd.DataFrame(rows)
