"""What tables show: their columns, their rows, and their cells as neutral text."""
