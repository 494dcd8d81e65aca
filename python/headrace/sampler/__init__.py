"""Samplers for one machine or many: torch's protocol, seeded, in orders that no number of ranks changes."""

from headrace.sampler.lengths import LengthBucketBatchSampler
from headrace.sampler.padding import Padded, PaddingCollate
from headrace.sampler.permutation import PermutationSampler

__all__ = ["LengthBucketBatchSampler", "Padded", "PaddingCollate", "PermutationSampler"]
