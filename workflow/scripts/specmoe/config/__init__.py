"""What a campaign measures: the configuration, checked, and the blocks that follow from it."""
