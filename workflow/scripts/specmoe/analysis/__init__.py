"""What rows say: settings, intervals, spread, costs, advice; every number that is shown."""
