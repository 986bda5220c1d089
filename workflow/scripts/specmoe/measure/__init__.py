"""Measurements: the two protocols, timed forward passes, draft scoring and divergences.

In: one block or one model, and a running engine.
Out: records in JSON, one a job.
"""
