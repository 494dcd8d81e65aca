"""Encoded bytes of this machine's files, kept in memory, and in a folder of a faster disk.

Decisions: 0058, 0075.
"""
