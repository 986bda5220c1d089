"""Figures, from an analysis."""
