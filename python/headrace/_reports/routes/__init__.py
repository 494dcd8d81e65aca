"""Reports about a loader by its route: its oracle, the comparison with it, and its explanation."""
