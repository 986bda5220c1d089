"""The published study: its rows as ours, and its claims and printed numbers beside an analysis."""
