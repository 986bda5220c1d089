"""Before measuring: the machine, what a campaign has and needs, and how long it may take."""
