"""Values of samples that are read from the shard when they are delivered: classes, texts, JSON."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from headrace._base.safe_exceptions import message_of
from headrace.datasets.sources.byte_ranges import Ranges


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8")


_DECODERS: dict[str, Callable[[bytes], object]] = {
    **dict.fromkeys(("cls", "cls2", "class", "count", "index", "inx", "id"), int),
    **dict.fromkeys(("txt", "text", "transcript"), _decode_text),
    **dict.fromkeys(("json", "jsn"), json.loads),
}
_PICKLED = ("pkl", "pickle", "pyd")
INTEGERS = frozenset(name for name, decode in _DECODERS.items() if decode is int)


def asked_names(
    image: str | Sequence[str], label: str | Sequence[str] | None, target_transform: object, missing: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Checks arguments that name the members of a sample; returns the images' extensions and the labels' names."""
    if missing not in ("raise", "skip"):
        raise ValueError(f"missing must be 'raise' or 'skip', not {missing!r}")
    if target_transform is not None and label is None:
        raise ValueError("target_transform is given, but label is None")
    images = tuple(name.lower() for name in (image.split(";") if isinstance(image, str) else image))
    return images, () if label is None else (label,) if isinstance(label, str) else tuple(label)


def checked_decoder(extension: str, allow_pickle: bool) -> Callable[[bytes], object]:
    """Returns what makes a value of a member's bytes; WebDataset's rule for its last extension, otherwise ``bytes``.

    Raises:
        ValueError: the value would be unpickled, and `allow_pickle` is False.
    """
    last = extension.rpartition(".")[2]
    if last not in _PICKLED:
        return _DECODERS.get(last, bytes)
    if not allow_pickle:
        raise ValueError(
            f"the label {extension!r} is pickled, and unpickling runs code that the shard holds; pass "
            "allow_pickle=True if you trust the shards"
        )
    return pickle.loads


class MemberValues(Sequence[object]):
    """The values of one extension, decoded on access.

    Args:
        ranges: where they are stored.
        decode: makes a value of its bytes.

    Raises:
        ValueError: on access, a value that cannot be decoded; the message names its member.
    """

    def __init__(self, ranges: Ranges, decode: Callable[[bytes], object]) -> None:
        self._ranges, self._decode = ranges, decode

    def __len__(self) -> int:
        return len(self._ranges)

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        """Begins to fetch values that are in other machines, and returns their number of bytes."""
        return self._ranges.expect(indices, wait)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> list[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        data = self._ranges.take(index)
        try:
            return self._decode(data)
        except Exception as error:
            raise ValueError(f"{self._ranges.location(index)} cannot be decoded: {message_of(error)}") from error


class Together(Sequence[object]):
    """Several values of each sample, as a dict."""

    def __init__(self, parts: dict[str, Sequence[object] | npt.NDArray[np.int64]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(next(iter(self._parts.values())))

    @overload
    def __getitem__(self, index: int) -> dict[str, object]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, object]]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        made = {name: values[index] for name, values in self._parts.items()}
        return {name: int(value) if isinstance(value, np.integer) else value for name, value in made.items()}


class MemberNames(Sequence[str]):
    """The names of samples' members within their shards: the key, and an extension."""

    def __init__(self, keys: Sequence[str], extension_of: npt.NDArray[np.uint8], extensions: list[str]) -> None:
        self._keys, self._extension_of, self._extensions = keys, extension_of, extensions

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return f"{self._keys[index]}.{self._extensions[int(self._extension_of[index])]}"
