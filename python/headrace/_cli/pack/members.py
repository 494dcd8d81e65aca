"""A source's samples as members of tar shards: key, encoded image, label."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from headrace._base.safe_exceptions import message_of
from headrace._cli.pack.keys import Keys
from headrace.datasets.sources.dataset import BlobDataset

_SIGNATURES = (
    (b"\xff\xd8\xff", "jpg"),
    (b"\x89PNG", "png"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tif"),
    (b"MM\0*", "tif"),
    (b"P1", "pbm"),
    (b"P4", "pbm"),
    (b"P2", "pgm"),
    (b"P5", "pgm"),
    (b"P3", "ppm"),
    (b"P6", "ppm"),
)


class PackSample(NamedTuple):
    """One sample of a shard."""

    key: str
    members: dict[str, bytes]  # by extension, in the order in which they are written
    image: str  # the extension of the image


class Contents:
    """The samples of a source.

    Args:
        source: images that are encoded.

    Raises:
        ValueError: the source has no samples, or holds decoded pixels.
    """

    def __init__(self, source: BlobDataset) -> None:
        if not len(source):
            raise ValueError("the source has no samples")
        self.source = source
        self.keys = Keys(source)

    def __len__(self) -> int:
        return len(self.source)

    def sample(self, index: int) -> PackSample:
        """Returns a sample.

        Raises:
            ValueError: it cannot be read, or its label cannot be written; the message says where it is.
        """
        try:
            data = self.source.read(index)
        except OSError as error:
            raise ValueError(
                f"sample {index}, {self.source.location(index)}, cannot be read: {message_of(error)}"
            ) from error
        image = self.keys.extension(index) or extension_of(data)
        members = {image: data}
        if self.source.has_targets:
            try:
                extension, label = label_member(self.source.target(index))
            except (TypeError, ValueError) as error:
                where = self.source.location(index)
                raise ValueError(
                    f"the label of sample {index}, {where}, cannot be written: {message_of(error)}"
                ) from error
            members[extension] = label
        return PackSample(self.keys[index], members, image)


def extension_of(data: bytes) -> str:
    """Returns the extension of an encoded image by its first bytes; ``jpg`` where these say nothing."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((extension for signature, extension in _SIGNATURES if data.startswith(signature)), "jpg")


def label_member(label: object) -> tuple[str, bytes]:
    """Returns the extension and the bytes of a label: ``cls`` for whole numbers, ``txt`` for text, else ``json``.

    Raises:
        TypeError, ValueError: JSON cannot hold it.
    """
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return "cls", str(int(label)).encode()
    if isinstance(label, str):
        return "txt", label.encode()
    return "json", json.dumps(label, default=_as_plain_value, allow_nan=False).encode()


def _as_plain_value(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "tolist"):  # arrays and tensors
        return value.tolist()
    raise TypeError(f"JSON has no {type(value).__name__}")
