"""Batches of deferred tensors that cross from torch's workers to the main process as records, and are made there.

Decision: 0108.
"""

__all__: list[str] = []
