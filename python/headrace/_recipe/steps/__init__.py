"""The recipe of a dataset's transforms: native steps, calls of Python, and the table of byte values.

Decisions: 0008, 0016, 0024, 0030.
"""
