"""A recipe's batches from native threads; the counters of these threads.

Decisions: 0006, 0008, 0012, 0018, 0020, 0060.
"""
