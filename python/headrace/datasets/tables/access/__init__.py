"""Where shards and tables are stored: a folder of this machine, or objects in other machines, read by ranges.

Decisions: 0031, 0048.
"""
