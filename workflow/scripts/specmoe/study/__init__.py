"""The published study: its rows, its printed numbers and its claims.

In: the study's CSV, `resources/reported/`, and an `Analysis`.
Out: the study's rows as runs, and a verdict on each of its claims.
"""
