"""Samplers for one machine or many: torch's protocol, seeded, in orders that no number of ranks changes."""

from headrace.sampler.permutation import PermutationSampler

__all__ = ["PermutationSampler"]
