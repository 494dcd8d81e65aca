"""The base of headrace's datasets: map-style torch datasets that can say where each sample's bytes lie."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from headrace.base.native import core
from headrace.pixels.pillow_ops import open_rgb
from headrace.sources.labels import collate, on_the_default_device

_LOOKED_AT = 1000  # samples of a fingerprint


class Variant(NamedTuple):
    """A transform, and what is known of the images that it is called on."""

    transform: Any
    channels: int
    size: tuple[int, int] | None  # (height, width); None: varies


class BlobDataset(torch.utils.data.Dataset[Any]):
    """Samples that are images with a label each.

    ``dataset[i]`` is the plain Python way: Pillow opens the sample, `transform` is called on the image and
    `target_transform` on the label. `DataLoader` asks for the blobs instead and runs the transform natively.

    Args:
        labels: one a sample; ints become an int64 tensor in a batch, anything else is collated as torch would.
            None: samples are images alone.
        transform: called on a ``PIL.Image.Image`` in mode RGB, or L where `channels` is 1.
        target_transform: called on a label.
    """

    def __init__(
        self,
        labels: Sequence[Any] | np.ndarray[Any, Any] | torch.Tensor | None,
        transform: Callable[[Any], Any] | None,
        target_transform: Callable[[Any], Any] | None,
    ) -> None:
        if target_transform is not None and labels is None:
            raise ValueError("target_transform is given, but there are no labels")
        self.transform = transform
        self.target_transform = target_transform
        self._labels: Any = labels
        self._plain = False  # whether they are one int64 array
        if labels is not None and len(labels) > 0 and isinstance(labels[0], (int, np.integer)):
            array = np.asarray(labels)
            if array.dtype.kind in "iu" and array.ndim == 1 and int(array.max()) < 2**63:
                self._labels = array.astype(np.int64, copy=False)
                self._plain = True

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for a dataset of {len(self)} samples")
        index %= len(self)
        image: Any = self.image(index)
        if self.transform is not None:
            image = self.transform(image)
        return image if self._labels is None else (image, self.target(index))

    def __len__(self) -> int:
        raise NotImplementedError

    def read(self, index: int) -> bytes:
        """The sample's encoded bytes. Raises OSError where its file cannot be read."""
        raise NotImplementedError

    def image(self, index: int) -> Image.Image:
        """The sample as `transform` gets it: in mode RGB, or L where `channels` is 1."""
        return open_rgb(self.read(index))

    def metadata(self, index: int) -> dict[Any, Any]:
        """Pillow's ``info`` of the image that `image` gives."""
        if self.encoded:
            with Image.open(BytesIO(self.read(index))) as image:
                if image.format in ("JPEG", "MPO"):  # which are decoded without a change of it
                    return dict(image.info)
        return dict(self.image(index).info)

    def image_size(self, index: int) -> tuple[int, int]:
        """(height, width) of the sample before any transform, from its header."""
        with Image.open(BytesIO(self.read(index))) as image:
            return image.height, image.width

    def own_image(self, index: int) -> Any:
        """What the ``__getitem__`` of a dataset that says what its images are hands to its transform; None: unknown."""
        return None

    def identity(self, index: int) -> str:
        """Tells the sample from others, on whatever machine and in whatever folder the dataset lies."""
        return self.location(index)

    def fingerprint(self) -> str:
        """A hash that other samples, or the same in another order, do not have, for `state_dict()`: hex digits of
        SHA-256, first 16. It looks at a thousand samples, evenly spaced, and at the numbers among their labels."""
        places = np.unique(np.linspace(0, len(self) - 1, _LOOKED_AT).astype(np.int64))
        numbers = self.numbers(places) if self.has_targets else None
        digest = hashlib.sha256(repr((len(self), None if numbers is None else numbers.tolist())).encode())
        for place in places.tolist():
            digest.update(self.identity(place).encode(errors="surrogateescape") + b"\0")
        return digest.hexdigest()[:16]

    def location(self, index: int) -> str:
        """Where the sample lies, for messages: its path, if it has one."""
        raise NotImplementedError

    def blob_table(self) -> core.BlobTable:
        """The same for the native core, row i for sample i."""
        raise NotImplementedError

    @property
    def channels(self) -> int:
        """Of the images, before any transform: 1 or 3."""
        return 3

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) of every image; None: it varies, or is not known."""
        return None

    @property
    def encoded(self) -> bool:
        """Whether there is anything to decode."""
        return True

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The transforms of the samples: one, but for a dataset that is made of several."""
        return (Variant(self.transform, self.channels, self.size),)

    def is_current(self) -> bool:
        """Whether the dataset that this one stands for still holds what it did when it was looked at."""
        return True

    @property
    def has_targets(self) -> bool:
        return self._labels is not None

    def target(self, index: int) -> Any:
        """The label of a sample, through `target_transform`."""
        label = self._labels[index]
        if isinstance(label, np.integer):
            label = int(label)
        return label if self.target_transform is None else self.target_transform(label)

    def numbers(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """The targets of a batch, int64 (n,), where they are plain ints; else None."""
        return self._labels[indices] if self._plain and self.target_transform is None else None

    def targets_of(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        """The labels of a batch, collated as torch would: int64 tensor (n,) for ints."""
        numbers = self.numbers(indices)
        if numbers is not None:
            return on_the_default_device(torch.from_numpy(numbers))
        if self.target_transform is None and type(self._labels) is torch.Tensor:
            return self._labels[torch.from_numpy(indices)]
        named = indices.tolist()
        return collate(tuple(self.target(i) for i in named), named, self.location)


def checked_table(source: BlobDataset) -> core.BlobTable:
    """The source's table of blobs.

    Raises:
        ValueError: it is shorter than the source says that it is.
    """
    table = source.blob_table()
    if len(table) < len(source):
        raise ValueError(
            f"{type(source).__qualname__} says that it has {len(source)} samples, but its blob_table() has {len(table)}"
        )
    return table
