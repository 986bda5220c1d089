"""The paper and its supplement.

In: an `Analysis`, its tables and figures, and the templates of `paper/`.
Out: LaTeX, CSV files and PDFs.
"""
