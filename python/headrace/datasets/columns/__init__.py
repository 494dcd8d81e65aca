"""Datasets of plain arrays: rows of memory-mapped or in-memory columns, and cached tokens.

Decision: 0018.
"""
