"""The configuration of a campaign: its schema, checks and reference, and the blocks that follow.

In: the YAML files of `config/`, and overlays of users.
Out: a checked `Config`, and every `Block` to measure.
"""
