"""What the published study claims and prints, and what others draft with, beside an analysis."""
