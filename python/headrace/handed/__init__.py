"""The state of loaders whose batches torch delivers: torch's own iterators, watched from outside. See decision 0014."""

__all__: list[str] = []
