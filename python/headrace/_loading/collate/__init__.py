"""The user's collate_fn, called on views of finished batches.

Decisions: 0022, 0081.
"""
