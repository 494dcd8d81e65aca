"""Memory that torch's workers and the main process share: blocks that are used again, slots of small tensors.

Decisions: 0017, 0049, 0117.
"""

__all__: list[str] = []
