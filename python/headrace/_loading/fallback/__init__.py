"""States of loaders whose batches torch delivers: torch's own iterators, observed from outside. See decision 0014."""

__all__: list[str] = []
