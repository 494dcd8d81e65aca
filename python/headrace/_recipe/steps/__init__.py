"""The recipe of a dataset's transforms: native steps, calls of Python, and the table of byte values."""
