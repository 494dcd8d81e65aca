"""``headrace bench``: loaders compared on one dataset, their batches first, then their speed.

Decision: 0040.
"""
