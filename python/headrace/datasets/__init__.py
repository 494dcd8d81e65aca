"""Datasets that locate their samples' bytes or rows.

Decisions: 0031, 0032, 0076.
"""
