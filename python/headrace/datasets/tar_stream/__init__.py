"""Tar shards, here or in other machines, that are read from front to back, and not kept.

Decisions: 0046, 0058, 0087.
"""
