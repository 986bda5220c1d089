"""The web page.

In: an `Analysis`, the paper's figures, and the templates of `paper/site/`.
Out: one HTML file in two languages, and its data.
"""
