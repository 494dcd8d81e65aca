"""Lowers the transforms that return several images.

Decisions: 0019, 0030.
"""
