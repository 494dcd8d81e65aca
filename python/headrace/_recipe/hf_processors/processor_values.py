"""The values that an image processor makes of bytes, by the processor itself; tries whether the installed transformers
follows the rules by which its processors are made native."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._recipe.arithmetic import boxes, functional_pil, torch_resize_blur
from headrace._recipe.hf_processors.processor_steps import Geometry, steps_of
from headrace._recipe.hf_processors.recognition import CALL_IT
from headrace._recipe.images.pil_tensor import pil_to_tensor

#: (height, width) of the images that are tried: odd differences to every size, and images smaller than a crop.
_SIZES = ((61, 90), (90, 61), (301, 334))


def check_processor(processor: object) -> None:
    """Compares the processor with its steps on three images of noise.

    Raises:
        TypeError: the processor is not recognised.
        ValueError: it has a setting that has no native twin, refuses images, or makes other values than its steps.
    """
    steps = steps_of(processor)
    noise = np.random.Generator(np.random.PCG64(0))
    for height, width in _SIZES:
        pixels = noise.integers(0, 256, (height, width, *_channel_axis(processor)), dtype=np.uint8)
        image = Image.fromarray(pixels)
        theirs = values_of_processor(processor, image)
        for step in steps:
            image = _apply_step(step, image)
        ours = ProcessorValues(processor)(pil_to_tensor(image))
        if ours.dtype != theirs.dtype or not torch.equal(ours, theirs):
            raise ValueError(
                f"{type(processor).__name__} of the installed transformers follows other rules than those that "
                f"headrace knows; {CALL_IT}, and report this"
            )


def _channel_axis(processor: Any) -> tuple[int, ...]:
    """Returns the last axis of an image that the processor takes: none of one for gray images."""
    means = processor.image_mean
    gray = processor.do_normalize and not processor.do_convert_rgb and isinstance(means, Sequence) and len(means) == 1
    return () if gray else (3,)


def _apply_step(step: Geometry, image: Image.Image) -> Image.Image:
    if isinstance(step, S.CenterCrop):
        padding, box = boxes.center_crop(image.height, image.width, step.height, step.width, step.rounding)
        return functional_pil.crop(functional_pil.pad(image, padding, 0, "constant") if any(padding) else image, box)
    if isinstance(step, S.Resize):
        height, width = step.height, step.width
    else:
        height, width = boxes.resize_by_edge(image.height, image.width, step.size, step.max_size)
    if step.filter in S.TENSOR_FILTERS:
        mode = S.TENSOR_FILTERS[step.filter]
        resize = (
            torch_resize_blur.resize if torch_resize_blur.resizes_bytes(mode) else torch_resize_blur.resize_in_floats
        )
        return resize(image, height, width, mode)
    return functional_pil.resize(image, height, width, step.filter)


@dataclass(frozen=True)
class ProcessorValues:
    """Maps a uint8 tensor (C, H, W) to the processor's values (C, H, W): rescales and normalizes, and no more."""

    processor: Any

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return values_of_processor(
            self.processor,
            image,
            do_resize=False,
            do_center_crop=False,
            do_convert_rgb=False,
            do_pad=False,
            input_data_format="channels_first",
        )


def values_of_processor(processor: Any, image: object, **options: object) -> torch.Tensor:
    """Returns what the processor makes of one image: a tensor (C, H, W)."""
    made: torch.Tensor = processor(images=image, return_tensors="pt", **options)["pixel_values"][0]
    return made
