"""Base class of headrace's datasets: map-style torch datasets that know where each sample's bytes are stored."""

from __future__ import annotations

import array
import hashlib
import operator
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import ExifTags, Image

from headrace._base.native import core
from headrace._base.types import Array
from headrace._recipe.arithmetic.functional_pil import MODES, open_image
from headrace._storage.parts.sample_bytes import HeldBytes, SampleBytes
from headrace.datasets.sources.held_values import Held
from headrace.datasets.sources.labels import collate, move_to_default_device, whole_numbers
from headrace.datasets.sources.override_checks import makes_samples_as

_LOOKED_AT = 1000  # samples that `fingerprint` hashes
_ON_THEIR_SIDE = (5, 6, 7, 8)  # EXIF orientations that exchange width and height


class Variant(NamedTuple):
    """A transform, with the channels and the size of the images it is called on."""

    transform: Any
    channels: int
    size: tuple[int, int] | None  # (height, width); None: it varies or is unknown
    mode: str = "RGB"  # in which encoded images are opened
    upright: bool = False  # whether they are turned as their EXIF orientation says
    clips: Any = None  # which part of a file a sample is: ClipSampler of videos, AudioClip; None: an image
    order: Any = None  # of the axes of a clip of a video, such as "TCHW"


class BlobDataset(torch.utils.data.Dataset[Any]):
    """Images with an optional label each.

    ``dataset[i]`` runs in plain Python: Pillow opens the image, `transform` is called on the image and
    `target_transform` on the label. `DataLoader` reads the blobs from `blob_table` instead and runs the transform
    natively.

    Args:
        labels: one per sample. In a batch, ints become an int64 tensor; any other type is collated as torch does.
            None: samples are images without labels.
        transform: called on a ``PIL.Image.Image`` of mode RGB, or of mode L if `channels` is 1.
        target_transform: called on a label.

    Raises:
        TypeError: `labels` has no length.
        ValueError: `target_transform` is given without labels.
    """

    def __init__(
        self,
        labels: Sequence[object] | Array | torch.Tensor | None,
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
    ) -> None:
        if target_transform is not None and labels is None:
            raise ValueError("target_transform is given, but there are no labels")
        if labels is not None and not hasattr(labels, "__len__"):
            raise TypeError(
                f"labels must be a list with one label for each image, or None, not {type(labels).__name__}; "
                "a transform is named: transform=..."
            )
        self.transform: Callable[[Any], object] | None = transform
        self.target_transform: Callable[[Any], object] | None = target_transform
        self._labels: Any = labels
        self._plain = False  # whether the labels are one int64 array
        if labels is not None and len(labels) > 0 and isinstance(labels[0], (int, np.integer)):
            numbers = whole_numbers(labels, alone=False)
            if numbers is not None:
                self._labels, self._plain = numbers, True

    def __getitem__(self, index: int) -> Any:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for a dataset of {len(self)} samples")
        index %= len(self)
        made = self.transformed(self.image(index))
        return (made, self.target(index)) if self.has_targets else made

    def __len__(self) -> int:
        raise NotImplementedError

    def read(self, index: int) -> bytes:
        """Returns the sample's encoded bytes. Raises OSError if its file cannot be read."""
        raise NotImplementedError

    def file(self, index: int) -> str | SampleBytes:
        """Returns the sample's encoded file, of which parts can be read: its path, if it is a file of this machine;
        otherwise its bytes. Raises OSError."""
        return HeldBytes(self.read(index))

    def image(self, index: int) -> Image.Image:
        """Returns the image that `transform` is called on: mode RGB, or mode L if `channels` is 1."""
        return open_image(BytesIO(self.read(index)), self.mode, upright=self.upright)

    def transformed(self, image: Any) -> object:
        """Returns what `transform` makes of an image."""
        return image if self.transform is None else self.transform(image)

    def metadata(self, index: int) -> dict[object, object]:
        """Returns Pillow's ``info`` dict of the image that `image` returns."""
        if self.encoded and not self.upright:
            with Image.open(BytesIO(self.read(index))) as image:
                if image.format in ("JPEG", "MPO"):  # decoding does not change `info` in these formats
                    return dict(image.info.items())
        return dict(self.image(index).info.items())

    def image_size(self, index: int) -> tuple[int, int]:
        """Returns (height, width) of the image before any transform, read from its header."""
        with Image.open(BytesIO(self.read(index))) as image:
            turned = self.upright and image.getexif().get(ExifTags.Base.Orientation) in _ON_THEIR_SIDE
            return (image.width, image.height) if turned else (image.height, image.width)

    def origin(self, index: int) -> tuple[BlobDataset, int]:
        """Returns the dataset that a sample is of, and its index there: of a subset, that which it is taken from."""
        return self, index

    def own_image(self, index: int) -> object:
        """Returns what the wrapped dataset's own ``__getitem__`` passes to its transform; None if that is unknown.

        Only datasets with a ``headrace_source`` method know it.
        """
        return None

    def identity(self, index: int) -> str:
        """Returns a string for `fingerprint` that depends on neither the machine nor the root folder.

        Equal strings do not prove equal samples. The default is `location`: override it if that names a folder.
        """
        return self.location(index)

    def fingerprint(self) -> str:
        """Returns a hash of the samples and their order, for `state_dict()`: the first 16 hex digits of a SHA-256.

        Covers the number of samples, the identities of up to 1,000 evenly spaced samples, and their labels if these
        are plain ints.
        """
        places = np.unique(np.linspace(0, len(self) - 1, _LOOKED_AT).astype(np.int64))
        numbers = self.numbers_to_hash(places) if self.has_targets else None
        digest = hashlib.sha256(repr((len(self), None if numbers is None else numbers.tolist())).encode())
        for place in places.tolist():
            digest.update(self.identity(place).encode(errors="surrogateescape") + b"\0")
        return digest.hexdigest()[:16]

    def numbers_to_hash(self, indices: npt.NDArray[np.int64]) -> Array | None:
        """Returns the targets that `fingerprint` covers, if they are plain ints; otherwise None."""
        return self.numbers(indices)

    def location(self, index: int) -> str:
        """Returns where the sample is stored, for messages: its path, if it has one."""
        raise NotImplementedError

    def part_location(self, part: str, index: int) -> str:
        """Returns where a part of the sample is stored; an image has none."""
        return self.location(index)

    @property
    def ahead_bytes(self) -> int:
        """Bytes to fetch before they are read; 0: the samples are in this machine."""
        return 0

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        """Begins to fetch samples that are in other machines, and returns their number of bytes.

        Args:
            wait: whether to return only once a read of them does not wait.
        """
        return 0

    def expect_targets(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        """Does what `expect` does for the labels alone."""
        return 0

    def blob_table(self) -> core.BlobTable:
        """Returns the native core's table of blob locations; row i belongs to sample i."""
        raise NotImplementedError

    @property
    def mode(self) -> str:
        """Mode in which encoded images are opened: "RGB", "L" or "P"."""
        return "RGB"

    @property
    def upright(self) -> bool:
        """Whether encoded images are rotated or mirrored as their EXIF orientation says."""
        return False

    @property
    def channels(self) -> int:
        """Number of channels of the images before any transform: 1 or 3."""
        return 3 if self.mode == "RGB" else 1

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) of every image; None if it varies or is unknown."""
        return None

    @property
    def encoded(self) -> bool:
        """Whether the samples are encoded images, rather than pixels."""
        return True

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The transforms of the samples; more than one only if the dataset joins several."""
        return (Variant(self.transform, self.channels, self.size, self.mode, self.upright),)

    def variant_of(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the number in `variants` of each sample's transform, int64 (n,)."""
        return np.zeros(len(indices), dtype=np.int64)

    def is_current(self) -> bool:
        """Whether the wrapped dataset, if any, still holds the same values as when this source was made from it."""
        return makes_samples_as(self, BlobDataset)

    def named_sources(self) -> tuple[BlobDataset, ...]:
        """The datasets that ``headrace_source`` methods of the wrapped datasets have returned."""
        return ()

    def holds(self, indices: Sequence[int]) -> bool:
        """Whether the wrapped dataset, if any, still holds the same values of some samples; False may be wrong."""
        return makes_samples_as(self, BlobDataset)

    @property
    def storage_identity(self) -> object:
        """What compares equal for two sources, or at two times, if each sample's bytes are at the same place."""
        return self

    def known_sources(self) -> dict[int, BlobDataset]:
        """Returns the sources that parts of another source may be taken from, by the ``id()`` of their datasets."""
        return {}

    def frozen(self, before: object = None) -> BlobDataset:
        """Returns a source whose labels and target_transform are those of now, whatever happens to this one: torch's
        workers have them from when an epoch begins.

        Args:
            before: what the last call returned; labels that are the same are not copied again.
        """
        cls, methods = type(self), ("label", "target", "targets_of", "numbers")
        kinds = (list, array.array, np.ndarray, torch.Tensor)
        if not isinstance(self._labels, kinds) or any(
            getattr(cls, one) is not getattr(BlobDataset, one) for one in methods
        ):
            return self
        held = getattr(before, "_held_labels", None)
        if held is None or not held.is_held(self._labels):
            held = Held(self._labels)
        made: BlobDataset = object.__new__(cls)
        vars(made).update(vars(self), _labels=held.then, _held_labels=held)
        return made

    @property
    def has_targets(self) -> bool:
        return self._labels is not None

    def target(self, index: int) -> Any:
        """Returns the sample's label after `target_transform`."""
        label = self.label(index)
        return label if self.target_transform is None else self.target_transform(label)

    def label(self, index: int) -> object:
        """Returns the sample's label before `target_transform`."""
        label = self._labels[index]
        return int(label) if isinstance(label, np.integer) else label

    def sample_of(self, made: object, index: int) -> object:
        """Returns the sample that ``dataset[index]`` would be, given its image after all transforms."""
        return (made, self.target(index)) if self.has_targets else made

    def batch_of(self, images: object, targets: object) -> object:
        """Returns a batch, or a sample, of images with targets."""
        return [images, targets]

    def numbers(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Returns the targets of a batch, int64 (n,), if they are plain ints; otherwise None."""
        return self._labels[indices] if self._plain and self.target_transform is None else None

    def targets_of(self, indices: npt.NDArray[np.int64]) -> object:
        """Returns the targets of a batch, collated as torch does: an int64 tensor (n,) for ints."""
        numbers = self.numbers(indices)
        if numbers is not None:
            return move_to_default_device(torch.from_numpy(numbers))
        if self.target_transform is None and type(self._labels) is torch.Tensor:
            return self._labels[torch.from_numpy(indices)]
        named = indices.tolist()
        targets = [self.target(i) for i in named]  # no generator: that would make RuntimeError of a StopIteration
        return collate(tuple(targets), named, self.location)


def checked_mode(mode: object) -> str:
    """Returns the argument `mode` of a dataset. Raises ValueError unless it is one of MODES."""
    if mode not in MODES:
        raise ValueError(
            f"mode must be 'RGB', 'L' (gray levels) or 'P' (palette indices), not {mode!r}: pixels are bytes, in one "
            "or three channels"
        )
    return str(mode)


def checked_table(source: BlobDataset) -> core.BlobTable:
    """Returns the source's blob table.

    Raises:
        ValueError: the table has fewer rows than the source has samples.
    """
    table = source.blob_table()
    if len(table) < len(source):
        raise ValueError(
            f"{type(source).__qualname__} says that it has {len(source)} samples, but its blob_table() has {len(table)}"
        )
    return table
