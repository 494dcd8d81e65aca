"""Turns an epoch's order into the batches that the caller gets.

Decisions: 0007, 0015, 0068, 0076, 0079, 0081.
"""
