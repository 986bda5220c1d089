"""The web page, and what is pasted elsewhere, from an analysis."""
