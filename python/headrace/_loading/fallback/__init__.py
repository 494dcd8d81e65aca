"""States of loaders whose batches torch delivers: torch's own iterators, observed from outside. See decision 0014.

Decisions: 0014, 0017, 0026, 0049.
"""

__all__: list[str] = []
