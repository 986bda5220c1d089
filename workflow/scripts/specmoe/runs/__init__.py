"""Rows of runs: their schema, and how they come from records or from the study's file."""
