"""Transforms that have no native twin, called where they stand: on the image, or on the tensor, they would have seen.

Each is asked for in two ways: `on_image` by the oracle, `on_pixels` by the native path, which has an array instead of a
PIL image. Both hand the user's object the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace.base.native import core
from headrace.images.file_image import FileImage, Metadata
from headrace.images.kinds import of_kind
from headrace.images.pil_tensor import pil_to_tensor, to_pil_image

Pixels = npt.NDArray[np.uint8]


class CallError(TypeError):
    """A transform returned what cannot go on."""


class CallFunction(Protocol):
    """What a Call step calls."""

    def on_image(self, image: Image.Image) -> Any:
        """The next image, or the finished tensor (C, H, W) of the sample."""

    def on_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Any:
        """The same for RGBX pixels (H, W, 4): the next ones, or the finished tensor. `metadata`: of their file."""


def to_image(pixels: Pixels, channels: int, metadata: Metadata | None) -> Image.Image:
    """A PIL image of mode RGB, or L for 1 channel."""
    height, width = pixels.shape[:2]
    image = Image.frombytes("RGB", (width, height), np.ascontiguousarray(pixels).data, "raw", "RGBX")
    if channels == 1:
        image = image.getchannel("R")
    return image if metadata is None else FileImage.of(image, metadata)


def to_pixels(image: Image.Image) -> Pixels:
    """RGBX pixels (H, W, 4) of an image of mode RGB or L."""
    if image.mode == "L":
        image = Image.merge("RGB", (image, image, image))
    flat = np.frombuffer(image.tobytes("raw", "RGBX"), dtype=np.uint8)
    return flat.reshape(image.height, image.width, 4)


@dataclass(frozen=True)
class OnImage:
    """A transform from PIL image to PIL image of the same mode."""

    transform: Callable[[Any], Any]
    channels: int

    def on_image(self, image: Image.Image) -> Image.Image:
        made = self.transform(image)
        if not isinstance(made, Image.Image) or made.mode != image.mode:
            what = f"an image of mode {made.mode}" if isinstance(made, Image.Image) else type(made).__name__
            raise CallError(f"it returned {what}, where it took an image of mode {image.mode}")
        return made

    def on_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Pixels:
        return to_pixels(self.on_image(to_image(pixels, self.channels, metadata)))


@dataclass(frozen=True)
class OnBytes:
    """A transform from uint8 tensor (C, H, W) to uint8 tensor (C, H, W), any H and W.

    `before` are the tensor steps that the image came through, none of which changed a byte: they make the tensor the
    class that the transform expects.
    """

    before: tuple[Callable[[Any], Any], ...]
    transform: Callable[[Any], Any]
    channels: int

    def _called(self, tensor: torch.Tensor) -> torch.Tensor:
        for step in self.before:
            tensor = step(tensor)
        made = self.transform(tensor)
        if not isinstance(made, torch.Tensor) or made.dtype != torch.uint8 or made.shape[:-2] != tensor.shape[:-2]:
            raise CallError(f"it returned {described(made)}, where it took {described(tensor)}")
        return made.as_subclass(torch.Tensor)

    def on_image(self, image: Image.Image) -> Image.Image:
        return to_pil_image(self._called(pil_to_tensor(image).contiguous()))

    def on_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Pixels:
        tensor = torch.from_numpy(pixels[..., : self.channels].transpose(2, 0, 1).copy())
        made = self._called(tensor)
        after = np.zeros((*made.shape[-2:], 4), dtype=np.uint8)
        after[..., :3] = made.permute(1, 2, 0).numpy()  # one channel is repeated
        return after


@dataclass(frozen=True)
class Rest:
    """All transforms from one on that Python has to do: they make the finished tensor.

    Attributes:
        before: tensor steps before the first of them, pointwise; None: it takes the PIL image.
        lut: ``before`` of the 256 bytes, (C, 256), where it is of a dtype that the native path writes.
        like: a tensor of the kind that ``before`` makes, which the table's is given too.
        transforms: called one after the other.
        shape, dtype: of the finished tensor; None until known.
    """

    before: tuple[Callable[[Any], Any], ...] | None
    lut: torch.Tensor | None = field(compare=False)
    transforms: tuple[Callable[[Any], Any], ...]
    channels: int
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    like: torch.Tensor | None = field(default=None, compare=False, repr=False)

    def on_image(self, image: Image.Image) -> torch.Tensor:
        start: Any = image
        if self.before is not None:
            start = pil_to_tensor(image).contiguous()
            for step in self.before:
                start = step(start)
        return self._finished(start)

    def on_pixels(self, pixels: Pixels, metadata: Metadata | None) -> torch.Tensor:
        if self.before is None or self.lut is None:
            return self.on_image(to_image(pixels, self.channels, metadata)).as_subclass(torch.Tensor)
        mapped = _mapped(pixels, self.lut)
        return self._finished(mapped if self.like is None else of_kind(mapped, self.like)).as_subclass(torch.Tensor)

    def _finished(self, value: Any) -> torch.Tensor:
        for transform in self.transforms:
            value = transform(value)
        if not isinstance(value, torch.Tensor):
            raise CallError(f"the transforms returned {described(value)}, where a tensor is needed")
        if self.shape is not None and (tuple(value.shape) != self.shape or value.dtype != self.dtype):
            batch = f"{self.dtype} {self.shape}"
            raise CallError(f"the transforms returned {described(value)}, where the batch holds {batch}")
        finished: torch.Tensor = value.detach()
        return finished


_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _mapped(pixels: Pixels, lut: torch.Tensor) -> torch.Tensor:
    """Pixels through a table (C, 256): (C, H, W)."""
    height, width = pixels.shape[:2]
    made = torch.empty((len(lut), height, width), dtype=lut.dtype, device="cpu")
    bits = _INTEGERS[lut.itemsize]  # numpy knows no bfloat16
    core.fuse(pixels, {"last": {"box": (0, 0, width, height)}}, lut.view(bits).numpy(), made.view(bits).numpy())
    return made


def described(value: Any) -> str:
    """A value's type, and a tensor's shape."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__
