"""Memory that torch's workers and the main process share: blocks that are used again.

Decisions: 0017, 0049.
"""

__all__: list[str] = []
