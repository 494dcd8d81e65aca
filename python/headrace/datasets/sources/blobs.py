"""A dataset of encoded images in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from headrace._base.native import core
from headrace._base.types import Array, State
from headrace._storage.parts.sample_bytes import HeldBytes, SampleBytes
from headrace.datasets.sources.dataset import BlobDataset, checked_mode
from headrace.datasets.sources.held_values import Held

_LOOKED_AT = 4096  # bytes of each blob that `identity` hashes


class EncodedImages(BlobDataset):
    """Encoded images (JPEG, PNG, ...) in memory, with their labels.

    Args:
        blobs: bytes-like objects, one encoded image each. They are not copied and must not change.
        labels: one per blob. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.
        mode: mode of the images that `transform` gets. ``"RGB"``; ``"L"``: gray levels; ``"P"``: the indices of files
            with a palette, or the values of files of mode L, unchanged, as an image of mode L: masks of classes. A
            file of another mode has no indices, and its sample fails.

    Raises:
        TypeError: a blob is not bytes-like.
        ValueError: the numbers of blobs and labels differ, or there is no such mode.
    """

    def __init__(
        self,
        blobs: Sequence[bytes | bytearray | memoryview],
        labels: Sequence[object] | Array | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        mode: str = "RGB",
    ) -> None:
        if isinstance(blobs, (bytes, bytearray, memoryview)):
            raise TypeError("blobs must be a list of bytes-like objects, not one")
        super().__init__(labels, transform, target_transform)
        self._mode = checked_mode(mode)
        self.blobs: list[bytes | bytearray | memoryview] = list(blobs)
        self._held: tuple[Held, object] | None = None  # the blobs of the newest epoch, and what stands for them
        for i, blob in enumerate(self.blobs):
            if not isinstance(blob, (bytes, bytearray, memoryview)):
                raise TypeError(f"blob {i} is {type(blob).__name__}; a bytes-like object is needed")
        if labels is not None and len(labels) != len(self.blobs):
            raise ValueError(f"there are {len(self.blobs)} blobs but {len(labels)} labels")

    @property
    def mode(self) -> str:
        return self._mode

    def __len__(self) -> int:
        return len(self.blobs)

    def read(self, index: int) -> bytes:
        return bytes(self.blobs[index])

    def file(self, index: int) -> SampleBytes:
        return HeldBytes(self.blobs[index])

    def identity(self, index: int) -> str:
        return f"{len(self.blobs[index])} {zlib.crc32(memoryview(self.blobs[index])[:_LOOKED_AT])}"

    def location(self, index: int) -> str:
        return f"blob {index} in memory, {len(self.blobs[index])} bytes"

    @property
    def storage_identity(self) -> object:
        if self._held is None or not self._held[0].is_held(self.blobs):
            self._held = Held(self.blobs), object()
        return self._held[1]

    def holds(self, indices: Sequence[int]) -> bool:
        held = self._held is None or self._held[0].rows_are_held(self.blobs, indices)
        return held and super().holds(indices)

    def blob_table(self) -> core.BlobTable:
        return core.BlobTable.of_memory(self.blobs)

    def __getstate__(self) -> State:
        # A memoryview cannot be pickled; its bytes can.
        blobs = [bytes(one) if isinstance(one, memoryview) else one for one in self.blobs]
        return {**self.__dict__, "blobs": blobs, "_held": None}

    def __repr__(self) -> str:
        return f"EncodedImages({len(self)} in memory)"
