"""Samplers for one machine or many: torch's protocol, seeded, in orders that no number of ranks changes."""

__all__: list[str] = []
