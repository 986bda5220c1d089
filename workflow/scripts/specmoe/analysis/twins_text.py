"""What experts alone do to the gain of drafting, in words."""

from math import isnan

from specmoe.analysis.filters import told_twins
from specmoe.analysis.registry import Analysis, Record, records


def describe_twins(analysis: Analysis) -> list[str]:
    """Return a sentence on each MoE beside its dense twin; none where there are no twins."""
    return [_sentence(row) for row in records(told_twins(analysis))]


def _sentence(row: Record) -> str:
    return (
        f"With {row['setting']} ({_accepted(row)}), {row['target_label']} has"
        f" {_ratio(row, 'ratio')} times the speedup of {row['dense_label']}:"
        f" {row['speedup']:.2f} against {row['dense_speedup']:.2f}{_same(row)}."
    )


def _accepted(row: Record) -> str:
    own, dense = (100 * row[key] for key in ("acceptance_rate", "dense_acceptance"))
    if isnan(own) or isnan(dense):
        return "nothing drafted"
    return f"{own:.1f} % of the drafted tokens accepted, {dense:.1f} % by the dense twin"


def _same(row: Record) -> str:
    same = row["same_tokens"]
    return "" if isnan(same) else f", with equal texts in {100 * same:.0f} % of the pairs"


def _ratio(row: Record, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    ends = "" if isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{row[name]:.2f}{ends}"
