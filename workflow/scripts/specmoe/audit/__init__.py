"""The audit: checks of every run, its sensitivity, and claims of speed.

In: runs, timed forward passes and draft scores, or a claim.
Out: a verdict of each check on each run, with its reason.
"""
