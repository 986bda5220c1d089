"""The tables that the paper, the page and the CSV files share.

In: an `Analysis`, and the entries of `paper/tables.yaml`.
Out: cells as neutral text, which is escaped where it is printed.
"""
