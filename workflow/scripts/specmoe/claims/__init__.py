"""What the published study claims and prints, held against an analysis."""
