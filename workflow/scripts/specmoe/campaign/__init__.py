"""A campaign: its configuration, blocks and engines, where its files are, and what is asked.

In: the configuration, and files of a results folder.
Out: a campaign as rules and jobs see it, and what of it is up to date.
"""
