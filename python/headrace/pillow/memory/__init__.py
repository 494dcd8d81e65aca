"""Memory of values, used again; files that images without pixels keep alive.

Decisions: 0049.
"""
