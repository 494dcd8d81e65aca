"""The kernels on their own: decode images, or crop, resize and normalise tensors, as torchvision would on PIL."""

from headrace.ops.functions import decode_jpeg, resize_normalize

__all__ = ["decode_jpeg", "resize_normalize"]
