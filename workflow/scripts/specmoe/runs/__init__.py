"""The runs of a campaign as a table, and shipped campaigns.

In: the records of its jobs, or the rows of the published study.
Out: `runs.parquet` by one schema, and a manifest of its folder.
"""
