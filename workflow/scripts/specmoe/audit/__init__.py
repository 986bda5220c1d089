"""Whether a row can be a measurement of what it says it measures."""
