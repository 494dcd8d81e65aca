"""headrace top: what the loaders of other processes do.

Decision: 0056.
"""
