"""``headrace pack``: sources written as tar shards or arrays, checked, and joined from several machines.

Decisions: 0034, 0035.
"""
