"""Reports about a loader: verification, explanation, statistics, timelines."""
