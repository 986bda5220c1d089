"""What the published study claims and prints, compared with an analysis."""
