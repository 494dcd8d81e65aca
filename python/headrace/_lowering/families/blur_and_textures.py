"""Lowers GaussianBlur of a PIL image, and TextureChannels, which is the last step."""

from __future__ import annotations

import operator
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._recipe.arithmetic import blur_rule, textures
from headrace._recipe.steps.draw_columns import Column, GaussianWeight
from headrace.transforms import TextureChannels


def gaussian_blur(builder: Builder, transform: Any, library: str) -> str:
    if builder.channels == 1:
        builder.refuse("blurs an image of one channel, whose terms torch adds in another order than the native blur")
    if not blur_rule.is_native_blur_exact():
        builder.refuse("blurs by torch's convolution, which adds in another order on this processor than headrace does")
    width, height = (operator.index(edge) for edge in transform.kernel_size)
    low, high = (float(sigma) for sigma in transform.sigma)
    softmax, draw = library != "v1", len(builder.columns)
    builder.draw(Column(low, high))
    for size in (width, height):
        first = len(builder.columns)
        builder.draw(*[GaussianWeight(draw, size, softmax, first)] * size)
    return builder.add(S.GaussianBlur(width, height, softmax, draw))


def texture_channels(builder: Builder, transform: TextureChannels, library: str) -> str:
    if builder.values is not None and not builder.holds_bytes:
        builder.refuse("takes bytes, not other values; put it before the steps that change them")
    if builder.container:
        builder.refuse(f"is native as the last step only, not inside {builder.container}; put it after that")
    if builder.following:
        builder.refuse(f"is native as the last step only, but {builder.following} comes after it")
    if builder.size is None:
        builder.refuse("needs images of one size; put a crop or Resize((height, width)) before it")
    return builder.add(S.Texture(transform.layout, transform.bands, textures.tables_for_native(*builder.size)))


LOWERS: dict[str, Lower] = {"GaussianBlur": refuse_tensors(gaussian_blur), "TextureChannels": texture_channels}
