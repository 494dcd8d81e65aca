"""The kernels as functions: decode images; crop, resize and normalise tensors, as torchvision does on PIL images.

Decisions: 0002, 0003, 0006.
"""

from headrace.ops.functions import decode_jpeg, resize_normalize

__all__ = ["decode_jpeg", "resize_normalize"]
