"""``headrace tune``: settings of a loader, measured in turn on one dataset.

Decision: 0045.
"""
