"""The figures of the paper and the page.

In: an `Analysis`.
Out: a PDF of each figure, and an SVG of those on the page.
"""
