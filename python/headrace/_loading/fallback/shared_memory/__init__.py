"""Memory that torch's workers and the main process share: blocks that are used again, slots of small tensors, a pickle.

Decisions: 0017, 0049, 0117, 0119.
"""

__all__: list[str] = []
