"""Reports about a loader: verification, explanation, statistics, timelines.

Decisions: 0012, 0039.
"""
