"""Files that Pillow has opened: which of them headrace reads, and their pixels after recorded operations.

Decisions: 0017, 0090.
"""
