"""What an advised setting does by category of prompt, in words."""

from collections.abc import Sequence

import pandas as pd

from specmoe.analysis.number_text import measured
from specmoe.analysis.registry import Record, records
from specmoe.analysis.summaries import CELL
from specmoe.words import counted

_NAMED_GAPS = 3


def describe_categories(row: Record, categories: pd.DataFrame, gaps: pd.DataFrame) -> list[str]:
    """Return sentences on the best setting of a target by category; none without categories.

    `row` is one of `advised_targets`, the frames are those of the analysis.
    """
    own, shown = records(_of_setting(categories, row)), records(_of_setting(gaps, row))
    if not own:
        return []
    listed = "; ".join(f"{one['category_label']} {_speedup(one)}" for one in own)
    lines = [f"By category, with intervals for other prompts of each: {listed}."]
    for words, where in (
        ("Faster than the target alone", [one for one in own if one["speedup_low"] > 1]),
        ("Slower than the target alone", [one for one in own if one["speedup_high"] < 1]),
    ):
        if where:
            lines.append(f"{words}: {', '.join(one['category_label'] for one in where)}.")
    if shown:
        lines.append(_gap_line([gap for gap in shown if pd.notna(gap["ratio"])]))
    return lines


def _gap_line(gaps: Sequence[Record]) -> str:
    if not gaps:
        return "No two categories are shown to differ."
    named = "; ".join(
        f"{gap['higher']} gains {_ratio(gap, 'ratio')} times as much as {gap['lower']}"
        for gap in gaps[:_NAMED_GAPS]
    )
    more = len(gaps) - _NAMED_GAPS
    rest = f"; and {counted(more, 'more pair')}" if more > 0 else ""
    return f"Categories differ: {named}{rest}."


def _speedup(one: Record) -> str:
    return f"{_ratio(one, 'speedup')} ({counted(one['prompts'], 'prompt')})"


def _ratio(row: Record, name: str) -> str:
    return measured(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _of_setting(frame: pd.DataFrame, row: Record) -> pd.DataFrame:
    same = pd.Series(True, index=frame.index)
    for key in CELL:
        same &= frame[key] == row[key]
    return frame[same.astype(bool)]
