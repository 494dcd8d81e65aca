"""The values that an image processor makes of bytes, by the processor itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class ProcessorValues:
    """Maps a uint8 tensor (C, H, W) to the processor's values (C, H, W): rescales and normalizes, and no more."""

    processor: Any

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return values(
            self.processor,
            image,
            do_resize=False,
            do_center_crop=False,
            do_convert_rgb=False,
            do_pad=False,
            input_data_format="channels_first",
        )


def values(processor: Any, image: Any, **options: Any) -> torch.Tensor:
    """Returns what the processor makes of one image: a tensor (C, H, W)."""
    made: torch.Tensor = processor(images=image, return_tensors="pt", **options)["pixel_values"][0]
    return made
