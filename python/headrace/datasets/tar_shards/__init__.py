"""Tar shards in WebDataset's layout as a dataset with random access.

Decisions: 0031, 0037, 0063, 0075.
"""
