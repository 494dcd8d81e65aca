"""A dataset of decoded images, held in one array in memory or in one memory-mapped file."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace._base.native import core
from headrace._base.types import Array, State
from headrace.datasets.sources.dataset import BlobDataset

_LOOKED_AT = 32  # rows of each image that `identity` hashes


class ImageArray(BlobDataset):
    """Decoded images in one uint8 array, with their labels. Nothing is decoded or copied.

    ``dataset[i]`` passes `transform` the same PIL image that torchvision's CIFAR10 and MNIST make from such an array.

    Args:
        images: uint8, shape (N, H, W, 3) for RGB, (N, H, W, 1) or (N, H, W) for gray. A numpy array, a memory-mapped
            file (``numpy.load(path, mmap_mode="r")``) or a CPU torch tensor, with any strides. Its shape must not
            change. Its values may change between epochs, which changes the samples.
        labels: one per image. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.

    Raises:
        TypeError: `images` is not a uint8 array or a dense uint8 CPU tensor.
        ValueError: `images` has another shape, or the numbers of images and labels differ.
    """

    def __init__(
        self,
        images: npt.NDArray[np.uint8] | torch.Tensor,
        labels: Sequence[object] | Array | torch.Tensor | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(labels, transform, target_transform)
        self._images = images
        self._pixels = _check_images(images)
        if labels is not None and len(labels) != len(self._pixels):
            raise ValueError(f"there are {len(self._pixels)} images but {len(labels)} labels")

    @property
    def images(self) -> npt.NDArray[np.uint8] | torch.Tensor:
        """The array that was passed in."""
        return self._images

    @property
    def channels(self) -> int:
        return 3 if self._pixels.shape[3:] == (3,) else 1

    @property
    def size(self) -> tuple[int, int]:
        height, width = self._pixels.shape[1:3]
        return height, width

    @property
    def encoded(self) -> bool:
        return False

    def __len__(self) -> int:
        return len(self._pixels)

    def image(self, index: int) -> Image.Image:
        pixels = self._pixels[index]
        return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)

    def read(self, index: int) -> bytes:
        raise TypeError("an array's images are not encoded; image(index) gives them")

    def identity(self, index: int) -> str:
        return f"{self.size} {zlib.crc32(self._pixels[index][:_LOOKED_AT].tobytes())}"

    def location(self, index: int) -> str:
        return f"image {index} of an array {tuple(self._pixels.shape)}"

    def blob_table(self) -> core.BlobTable:
        if tuple(self._images.shape) != self._pixels.shape:
            raise RuntimeError(
                f"the images' array was {self._pixels.shape} and is {tuple(self._images.shape)} now; make a new "
                "ImageArray of it"
            )
        return core.BlobTable.of_pixels(self._pixels)

    def __getstate__(self) -> State:
        # Leaves out the view, which would be pickled as a second copy of the array.
        return {name: value for name, value in self.__dict__.items() if name != "_pixels"}

    def __setstate__(self, kept: State) -> None:
        self.__dict__.update(kept, _pixels=_check_images(kept["_images"]))

    def __repr__(self) -> str:
        return f"ImageArray({len(self)} images of {' x '.join(map(str, self._pixels.shape[1:]))})"


def _check_images(images: object) -> npt.NDArray[np.uint8]:
    """Returns a numpy view of the images, with 3 or 4 axes."""
    if not isinstance(images, (np.ndarray, torch.Tensor)):
        raise TypeError(f"images must be a numpy array or a torch tensor of uint8, not {type(images).__name__}")
    if images.dtype not in (np.uint8, torch.uint8):
        raise TypeError(f"images are {images.dtype}, but pixels are bytes: give uint8 values from 0 to 255")
    if isinstance(images, torch.Tensor) and (images.device.type != "cpu" or images.layout != torch.strided):
        raise TypeError(
            f"images are a {images.layout} tensor on {images.device}; a dense one in this machine's memory is needed"
        )
    shape = tuple(images.shape)
    if len(shape) == 4 and shape[3] not in (1, 3) and shape[1] in (1, 3):
        turned = "permute" if isinstance(images, torch.Tensor) else "transpose"
        raise ValueError(
            f"images are {shape}, which looks like (N, C, H, W); channels come last: images.{turned}(0, 2, 3, 1)"
        )
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3)):
        raise ValueError(f"images are {shape}; (N, H, W, 3), (N, H, W, 1) or (N, H, W) is needed")
    if 0 in shape[1:]:
        raise ValueError(f"images are {shape}: they have no pixels")
    # A view: while it exists, numpy refuses to resize, and so to move, the array's memory.
    return images.numpy() if isinstance(images, torch.Tensor) else np.asarray(images)[...]
