"""Logs of other programs, read into rows."""
