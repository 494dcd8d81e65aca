"""``headrace report``: one HTML page about a loader, which needs no network.

Decision: 0040.
"""
