"""What a loader and its helpers send each other: arrays in numpy's format, and what has to agree on both sides."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.version import __version__

#: The version of these messages: of the paths, the headers and the arrays.
PROTOCOL = 1
TERMS_PATH, RECIPE_PATH = "/v1/terms", "/v1/recipe"
#: Samples of files that are in the request, by their draws, or by their plans; samples of the helper's dataset;
#: checksums of files of the dataset.
SAMPLES_PATH, PLANS_PATH, ROWS_PATH, FILES_PATH = "/v1/samples", "/v1/plans", "/v1/rows", "/v1/files"
#: The names of headers: the recipe that a request is for, the helper's dataset, and the checksum of a body.
RECIPE_HEADER, DATASET_HEADER, CHECKSUM_HEADER = "Headrace-Recipe", "Headrace-Dataset", "Headrace-Crc32"
#: Bytes of a recipe, and of the samples of one request or answer.
MOST_RECIPE_BYTES, MOST_BYTES = 4 << 20, 1 << 30
#: The arrays of a request, by its path: draws, bytes of each file, the files' bytes; the text of the plans, the same;
#: draws, rows; rows.
REQUEST_KINDS = {
    SAMPLES_PATH: ("<f8", "<i8", "u1"),
    PLANS_PATH: ("u1", "<i8", "u1"),
    ROWS_PATH: ("<f8", "<i8"),
    FILES_PATH: ("<i8",),
}
#: And of its answer: samples, made, sizes; CRC-32 of each file.
ANSWER_KINDS = {**dict.fromkeys((SAMPLES_PATH, PLANS_PATH, ROWS_PATH), ("u1", "u1", "<i4")), FILES_PATH: ("<i8",)}
#: What JSON of an unexpected form raises where it is read.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_MOST_HEADER_BYTES = 1 << 12
_KINDS = {np.dtype(one).str for one in ("u1", "<i4", "<i8", "<f8")}

Array = npt.NDArray[Any]


class Source(Protocol):
    """A body that is being received."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, memory: memoryview, /) -> int | None: ...


class MessageError(ValueError):
    """A message that is not what was agreed, with the reason."""


@dataclass(frozen=True)
class Terms:
    """What decides pixels and must be the same on both sides, and what a helper offers.

    Attributes:
        protocol: see `PROTOCOL`.
        version: headrace's.
        processor: family of the processor: the inverse DCT of libjpeg-turbo differs between x86 and Arm.
        threads: number of threads that make samples.
        dataset: fingerprint of the dataset that it reads itself; "": none.
    """

    protocol: int
    version: str
    processor: str
    threads: int
    dataset: str = ""

    @classmethod
    def of_this_machine(cls, threads: int = 0, dataset: str = "") -> Terms:
        return cls(PROTOCOL, __version__, _family(), threads, dataset)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Terms:
        """Raises MessageError."""
        try:
            content = json.loads(text)
            version, processor = str(content["version"]), str(content["processor"])
            threads, dataset = int(content["threads"]), str(content["dataset"])
            return cls(int(content["protocol"]), version, processor, threads, dataset)
        except MALFORMED as error:
            raise MessageError(f"it does not answer as a helper of headrace: {type(error).__name__}: {error}") from None

    def refusal_of(self, helper: Terms) -> str:
        """Returns why a loader with these terms does not use a helper; "" if it does."""
        for what, mine, its in (
            ("messages of version", self.protocol, helper.protocol),
            ("headrace", self.version, helper.version),
            ("a processor of the family", self.processor, helper.processor),
        ):
            if mine != its:
                return f"it has {what} {its}, and this machine {mine}: their pixels or messages may differ"
        return ""


def _family() -> str:
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Order:
    """How a helper makes samples: the recipe, and what else decides their bytes.

    Attributes:
        recipe: see `recipe_text`.
        layout: the batch's memory format, of finished elements.
        finished: see `recipe_text.RecipeText`.
        max_pixels: larger images are left to Pillow, and so to the loader.
        pass_order: see `pillow_rule`.
    """

    recipe: str
    layout: str
    finished: bool
    max_pixels: int
    pass_order: str

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Order:
        """Raises MessageError."""
        try:
            found = json.loads(text)
            words = [str(found[name]) for name in ("recipe", "layout", "pass_order")]
            return cls(words[0], words[1], bool(found["finished"]), int(found["max_pixels"]), words[2])
        except MALFORMED as error:
            raise MessageError(f"this is no order of samples: {type(error).__name__}: {error}") from None


def name_of(order: bytes) -> str:
    """Returns the name of an order: 32 hex digits of the SHA-256 of its JSON."""
    return hashlib.sha256(order).hexdigest()[:32]


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def body_of(arrays: Sequence[Array]) -> list[memoryview]:
    """Returns the parts of a body of arrays, each in numpy's ``.npy`` format, one after another. Nothing is copied."""
    parts = []
    for one in arrays:
        head = BytesIO()
        description = {"descr": one.dtype.str, "fortran_order": False, "shape": one.shape}
        np.lib.format.write_array_header_1_0(head, description)
        parts += [head.getbuffer(), _bytes_of(one)]
    return parts


def checksum_of(arrays: Sequence[Array]) -> str:
    """Returns the checksums of the arrays' bytes, as a header has them."""
    return ",".join(str(core.crc32(_bytes_of(one))) for one in arrays)


class Memory:
    """Memory of the largest array of a message, used again for the next one: new pages cost as much as receiving."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Returns an array in it; the array that was returned before is overwritten."""
        count = math.prod(shape) * dtype.itemsize
        if len(self._bytes) < count:
            self._bytes = np.empty(count, np.uint8)
        return self._bytes[:count].view(dtype).reshape(shape)


def read_arrays(
    source: Source, size: int, kinds: Sequence[str], checksum: str, memory: Memory | None = None
) -> list[Array]:
    """Reads the arrays of a body of `size` bytes.

    Args:
        kinds: their dtypes, such as ``"u1"``.
        checksum: see `checksum_of`.
        memory: of an array that has more than half of the bytes; None: new memory.

    Raises:
        MessageError: these are other bytes.
    """
    if not 0 <= size <= MOST_BYTES:
        raise MessageError(f"a body of {size} bytes is too large")
    made: list[Array] = []
    left = size
    for kind in kinds:
        shape, dtype, head = _read_head(source, left)
        if not _fits(shape, dtype, left - head) or dtype != np.dtype(kind):
            raise MessageError(f"an array of {dtype} {shape} is not what was agreed")
        is_largest = memory is not None and 2 * math.prod(shape) * dtype.itemsize > size
        array = memory.array(shape, dtype) if memory is not None and is_largest else np.empty(shape, dtype)
        _fill(source, _bytes_of(array))
        made.append(array)
        left -= head + array.nbytes
    if left:
        raise MessageError(f"{left} bytes after the last array")
    if checksum_of(made) != checksum:
        raise MessageError("the checksum of the bytes is another one")
    return made


def _fits(shape: tuple[int, ...], dtype: np.dtype[Any], left: int) -> bool:
    size = dtype.itemsize
    return all(one >= 0 and (size := size * one) <= left for one in shape)


def _read_head(source: Source, left: int) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Returns shape and dtype of an array, and the number of bytes that say so."""
    start = _exactly(source, 10) if left >= 10 else b""
    length = int.from_bytes(start[8:10], "little")
    if 10 + length > left or start[:8] != b"\x93NUMPY\x01\x00" or length > _MOST_HEADER_BYTES:
        raise MessageError("this is no array in numpy's format 1.0")
    try:
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(
            BytesIO(start[8:10] + _exactly(source, length)), max_header_size=_MOST_HEADER_BYTES
        )
    except Exception as error:  # what Python's parser raises of a damaged one
        raise MessageError(f"this is no array in numpy's format 1.0: {type(error).__name__}") from None
    if fortran or dtype.str not in _KINDS | {"|u1"} or len(shape) > 4:
        raise MessageError(f"an array of {dtype} {shape} is not what was agreed")
    return shape, dtype, 10 + length


def _exactly(source: Source, count: int) -> bytes:
    content = source.read(count)
    if len(content) != count:
        raise MessageError("the message ends too early")
    return content


def _fill(source: Source, memory: memoryview) -> None:
    done = 0
    while done < len(memory):
        count = source.readinto(memory[done:])
        if not count:
            raise MessageError("the message ends too early")
        done += count
