"""What rows say: cells, intervals, spread, costs, advice; every number that is shown."""
