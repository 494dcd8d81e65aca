"""Samplers for one process or many: torch's protocol, seeded, in orders that do not depend on the number of ranks.

Decisions: 0011, 0079, 0113, 0115, 0121.
"""

from headrace.sampler.aspect import AspectRatioBatchSampler
from headrace.sampler.distributed import DistributedSampler, ShardedSampler
from headrace.sampler.lengths import LengthBucketBatchSampler
from headrace.sampler.mixture import MixtureSampler
from headrace.sampler.packed import Packed, PackingCollate
from headrace.sampler.packing import PackingBatchSampler
from headrace.sampler.padding import Padded, PaddingCollate
from headrace.sampler.patches import PackedPatches, PatchPackingCollate, patch_counts
from headrace.sampler.permutation import PermutationSampler
from headrace.sampler.pixels import PixelBudgetBatchSampler
from headrace.sampler.repeated import RepeatedAugment

__all__ = [
    "AspectRatioBatchSampler",
    "DistributedSampler",
    "LengthBucketBatchSampler",
    "MixtureSampler",
    "Packed",
    "PackedPatches",
    "PackingBatchSampler",
    "PackingCollate",
    "Padded",
    "PaddingCollate",
    "PatchPackingCollate",
    "PermutationSampler",
    "PixelBudgetBatchSampler",
    "RepeatedAugment",
    "ShardedSampler",
    "patch_counts",
]
