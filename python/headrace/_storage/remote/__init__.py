"""Objects in other machines, through fsspec: read ahead of the decoders, retried, cached in memory and on disk.

Decisions: 0036, 0070, 0075.
"""
