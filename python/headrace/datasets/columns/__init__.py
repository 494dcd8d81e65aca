"""Datasets of plain arrays: rows of memory-mapped or in-memory columns, cached tokens, lists in one buffer.

Decisions: 0018, 0119.
"""
