"""Measurements: the two protocols, the check of divergences, and the trace of one prompt."""
