"""Epochs: their order, each rank's share of it, their progress, and the loader's state for a checkpoint.

Decisions: 0004, 0011, 0015, 0079.
"""
