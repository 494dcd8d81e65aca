"""Calls of transforms that have no native twin, on the same image or tensor that torchvision would pass them.

Each call has two entry points: `call_image` for the oracle, and `call_pixels` for the native path, which has an array
instead of a PIL image. Both pass the same object to the transform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace._base.errors import HeadraceError
from headrace._base.native import core
from headrace._base.types import Function
from headrace._recipe.images.file_image import FileImage, Metadata
from headrace._recipe.images.part_kinds import wrap_as
from headrace._recipe.images.pil_tensor import pil_to_tensor, to_pil_image

Pixels = npt.NDArray[np.uint8]


class CallError(HeadraceError, TypeError):
    """A transform returned a value of an unsupported type, shape or dtype."""


class CallFunction(Protocol):
    """The function of a Call step."""

    @property
    def called(self) -> tuple[Function, ...]:
        """The transforms that it calls."""

    def call_image(self, image: Image.Image) -> Image.Image | torch.Tensor:
        """Returns the transformed image, or the sample's finished tensor (C, H, W)."""

    def call_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Pixels | torch.Tensor:
        """Does the same for RGBX pixels (H, W, 4): returns transformed pixels or the finished tensor.

        Args:
            pixels: the image, uint8 (H, W, 4).
            metadata: reads the metadata of the image's file; None: the image has none.
        """


def to_image(pixels: Pixels, channels: int, metadata: Metadata | None) -> Image.Image:
    """Returns RGBX pixels (H, W, 4) as a PIL image of mode RGB, or L for 1 channel."""
    height, width = pixels.shape[:2]
    image = Image.frombytes("RGB", (width, height), np.ascontiguousarray(pixels).data, "raw", "RGBX")
    if channels == 1:
        image = image.getchannel("R")
    return image if metadata is None else FileImage.of(image, metadata)


def to_pixels(image: Image.Image) -> Pixels:
    """Returns the RGBX pixels (H, W, 4) of an image of mode RGB or L."""
    if image.mode == "L":
        image = Image.merge("RGB", (image, image, image))
    flat = np.frombuffer(image.tobytes("raw", "RGBX"), dtype=np.uint8)
    return flat.reshape(image.height, image.width, 4)


@dataclass(frozen=True)
class OnImage:
    """Calls a transform from PIL image to PIL image of the same mode."""

    transform: Function
    channels: int

    @property
    def called(self) -> tuple[Function, ...]:
        return (self.transform,)

    def call_image(self, image: Image.Image) -> Image.Image:
        mode = image.mode  # it may change the image in place
        made = self.transform(image)
        if not isinstance(made, Image.Image) or made.mode != mode:
            what = f"an image of mode {made.mode}" if isinstance(made, Image.Image) else type(made).__name__
            raise CallError(f"it returned {what}, but was passed an image of mode {mode}")
        return made

    def call_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Pixels:
        return to_pixels(self.call_image(to_image(pixels, self.channels, metadata)))


@dataclass(frozen=True)
class OnBytes:
    """Calls a transform from uint8 tensor (C, H, W) to uint8 tensor (C, H, W), any H and W.

    `before` are the tensor steps before it. They change no byte, but convert the tensor to the class that the transform
    expects.
    """

    before: tuple[Function, ...]
    transform: Function
    channels: int

    @property
    def called(self) -> tuple[Function, ...]:
        return (self.transform,)

    def tensor_of(self, image: Image.Image) -> torch.Tensor:
        """Returns what it makes of an image, of the class that it returns."""
        return self._call_transform(pil_to_tensor(image).contiguous())

    def _call_transform(self, tensor: torch.Tensor) -> torch.Tensor:
        for step in self.before:
            tensor = step(tensor)
        made = self.transform(tensor)
        if not isinstance(made, torch.Tensor) or made.dtype != torch.uint8 or made.shape[:-2] != tensor.shape[:-2]:
            raise CallError(f"it returned {name_type(made)}, but was passed {name_type(tensor)}")
        if type(made) not in (type(tensor), torch.Tensor):
            raise CallError(f"it returned a {type(made).__name__}, but was passed a {type(tensor).__name__}")
        return made

    def call_image(self, image: Image.Image) -> Image.Image:
        return to_pil_image(self.tensor_of(image).as_subclass(torch.Tensor))

    def call_pixels(self, pixels: Pixels, metadata: Metadata | None) -> Pixels:
        tensor = torch.from_numpy(pixels[..., : self.channels].transpose(2, 0, 1).copy())
        made = self._call_transform(tensor).as_subclass(torch.Tensor)
        after = np.zeros((*made.shape[-2:], 4), dtype=np.uint8)
        after[..., :3] = made.permute(1, 2, 0).numpy()  # a single channel is broadcast to three
        return after


@dataclass(frozen=True)
class Rest:
    """Calls all remaining transforms in Python, which make the finished tensor.

    Attributes:
        before: the pointwise tensor steps before the first of them; None: it takes the PIL image.
        lut: ``before`` of the 256 byte values, (C, 256); None if its dtype is not one that the native path writes.
        transforms: the transforms, called in order.
        channels: channels of the image, 1 or 3.
        shape, dtype: those of the finished tensor; None until known.
        like: a tensor of the kind that ``before`` returns; values mapped by `lut` are converted to this kind.
    """

    before: tuple[Function, ...] | None
    lut: torch.Tensor | None = field(compare=False)
    transforms: tuple[Function, ...]
    channels: int
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    like: torch.Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def called(self) -> tuple[Function, ...]:
        return self.transforms

    def call_image(self, image: Image.Image) -> torch.Tensor:
        start: Any = image
        if self.before is not None:
            start = pil_to_tensor(image).contiguous()
            for step in self.before:
                start = step(start)
        return self._finish_value(start)

    def call_pixels(self, pixels: Pixels, metadata: Metadata | None) -> torch.Tensor:
        if self.before is None or self.lut is None:
            return self.call_image(to_image(pixels, self.channels, metadata)).as_subclass(torch.Tensor)
        mapped = _map_pixels(pixels, self.lut)
        return self._finish_value(mapped if self.like is None else wrap_as(mapped, self.like)).as_subclass(torch.Tensor)

    def _finish_value(self, value: object) -> torch.Tensor:
        for transform in self.transforms:
            value = transform(value)
        if not isinstance(value, torch.Tensor):
            raise CallError(f"the transforms returned {name_type(value)}, but a tensor is needed")
        if self.shape is not None and (tuple(value.shape) != self.shape or value.dtype != self.dtype):
            batch = f"{self.dtype} {self.shape}"
            raise CallError(f"the transforms returned {name_type(value)}, but the batch holds {batch}")
        if value.requires_grad and self.shape is not None:
            raise CallError("the transforms returned a tensor that requires gradients, which the batch does not")
        return value


_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _map_pixels(pixels: Pixels, lut: torch.Tensor) -> torch.Tensor:
    """Returns RGBX pixels mapped by a table (C, 256), as a tensor (C, H, W)."""
    height, width = pixels.shape[:2]
    made = torch.empty((len(lut), height, width), dtype=lut.dtype, device="cpu")
    bits = _INTEGERS[lut.itemsize]  # integers of the same size, because numpy has no bfloat16
    core.fuse(pixels, {"last": {"box": (0, 0, width, height)}}, lut.view(bits).numpy(), made.view(bits).numpy())
    return made


def name_type(value: object) -> str:
    """Returns a tensor's dtype and shape, or any other value's type, for messages."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__
