"""nvJPEG through ctypes: the reference for headrace's own use of it, and the interface for the open questions.

Written from nvjpeg.h 13.3, independently of csrc/gpu, so that it can check the native code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from headrace._core import JpegHeader

BACKENDS = {"cuda": 2, "hardware": 3, "cuda_device": 4, "hardware_device": 5}  # *_device: files in the GPU's memory
NO_PIPELINE = 1  # NVJPEG_FLAGS_HW_DECODE_NO_PIPELINE
YUV, LUMA = 1, 2
CSS_444 = 0
SCALES = {1: 0, 2: 1, 4: 2, 8: 3}
STATUS = [
    "success",
    "not initialized",
    "invalid parameter",
    "bad JPEG",
    "JPEG not supported",
    "allocator failure",
    "execution failed",
    "architecture mismatch",
    "internal error",
    "implementation not supported",
    "incomplete bitstream",
]

_pointer = ctypes.c_void_p
_int, _unsigned, _size = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t


class Image(ctypes.Structure):
    """nvjpegImage_t: up to four planes."""

    _fields_: ClassVar = [("channel", _pointer * 4), ("pitch", _size * 4)]


_SIGNATURES: dict[str, list[Any]] = {
    "nvjpegCreateEx": [_int, _pointer, _pointer, _unsigned, _pointer],
    "nvjpegDestroy": [_pointer],
    "nvjpegGetProperty": [_int, _pointer],
    "nvjpegGetHardwareDecoderInfo": [_pointer, _pointer, _pointer],
    "nvjpegJpegStateCreate": [_pointer, _pointer],
    "nvjpegJpegStateDestroy": [_pointer],
    "nvjpegDecodeBatchedInitialize": [_pointer, _pointer, _int, _int, _int],
    "nvjpegDecodeBatched": [_pointer, _pointer, _pointer, _pointer, _pointer, _pointer],
    "nvjpegDecodeBatchedEx": [_pointer, _pointer, _pointer, _pointer, _pointer, _pointer, _pointer],
    "nvjpegDecodeBatchedPreAllocate": [_pointer, _pointer, _int, _int, _int, _int, _int],
    "nvjpegDecodeBatchedSupportedEx": [_pointer, _pointer, _pointer, _pointer],
    "nvjpegJpegStreamCreate": [_pointer, _pointer],
    "nvjpegJpegStreamDestroy": [_pointer],
    "nvjpegJpegStreamParseHeader": [_pointer, _pointer, _size, _pointer],
    "nvjpegDecodeParamsCreate": [_pointer, _pointer],
    "nvjpegDecodeParamsDestroy": [_pointer],
    "nvjpegDecodeParamsSetOutputFormat": [_pointer, _int],
    "nvjpegDecodeParamsSetROI": [_pointer, _int, _int, _int, _int],
    "nvjpegDecodeParamsSetScaleFactor": [_pointer, _int],
}


class NvjpegError(RuntimeError):
    """A status other than success."""

    def __init__(self, function: str, status: int) -> None:
        name = STATUS[status] if 0 <= status < len(STATUS) else "unknown"
        super().__init__(f"{function}: {status} ({name})")
        self.status = status


@dataclass(frozen=True)
class Files:
    """Encoded files of a call: their addresses and lengths. The caller keeps the memory alive."""

    data: Any  # array of pointers
    lengths: Any  # array of sizes
    count: int

    @classmethod
    def at(cls, addresses: Sequence[int], lengths: Sequence[int]) -> Files:
        """Files at these addresses."""
        count = len(addresses)
        return cls((_pointer * count)(*addresses), (_size * count)(*lengths), count)


def images(planes: Sequence[Sequence[tuple[int, int]]]) -> Any:
    """Destinations: for each image the (address, pitch) of its planes."""
    made = (Image * len(planes))()
    for image, channels in zip(made, planes, strict=True):
        for c, (address, pitch) in enumerate(channels):
            image.channel[c], image.pitch[c] = address, pitch
    return made


class Nvjpeg:
    """A handle of one backend. Methods raise NvjpegError, those named try_* return the status."""

    def __init__(self, backend: str, candidates: Sequence[str]) -> None:
        self.backend = backend
        self._library = self._load(candidates)
        self._handle = _pointer()
        flags = NO_PIPELINE if backend.startswith("hardware") else 0  # as headrace, which has fewer streams then
        self._call("nvjpegCreateEx", BACKENDS[backend], None, None, flags, ctypes.byref(self._handle))

    @staticmethod
    def _load(candidates: Sequence[str]) -> ctypes.CDLL:
        said: OSError | None = None
        for path in candidates:
            try:
                library = ctypes.CDLL(path)
            except OSError as error:
                said = error
                continue
            for name, arguments in _SIGNATURES.items():
                getattr(library, name).argtypes = arguments
            return library
        raise RuntimeError(f"no nvJPEG: {said}")

    def _call(self, function: str, *arguments: Any) -> None:
        status = int(getattr(self._library, function)(*arguments))
        if status != 0:
            raise NvjpegError(function, status)

    def close(self) -> None:
        """Destroys the handle."""
        self._call("nvjpegDestroy", self._handle)

    def version(self) -> str:
        """For example "13.3.2"."""
        parts = []
        for kind in range(3):
            value = _int()
            self._call("nvjpegGetProperty", kind, ctypes.byref(value))
            parts.append(str(value.value))
        return ".".join(parts)

    def engines(self) -> tuple[int, int]:
        """JPEG engines, and cores of each."""
        engines, cores = _unsigned(), _unsigned()
        self._call("nvjpegGetHardwareDecoderInfo", self._handle, ctypes.byref(engines), ctypes.byref(cores))
        return engines.value, cores.value

    def state(self) -> _pointer:
        """A new decoder state, for one thread at a time."""
        made = _pointer()
        self._call("nvjpegJpegStateCreate", self._handle, ctypes.byref(made))
        return made

    def free(self, state: _pointer) -> None:
        """Destroys a state."""
        self._call("nvjpegJpegStateDestroy", state)

    def preallocate(self, state: _pointer, batch: int, width: int, height: int) -> None:
        """Allocates memory for batches of images up to this size."""
        self._call("nvjpegDecodeBatchedPreAllocate", self._handle, state, batch, width, height, CSS_444, YUV)

    def initialize(self, state: _pointer, batch: int, output: int = YUV) -> None:
        """Required before the calls of a batch size, and after a failed call."""
        self._call("nvjpegDecodeBatchedInitialize", self._handle, state, batch, 1, output)

    def try_decode(self, state: _pointer, files: Files, to: Any, stream: int) -> int:
        """nvjpegDecodeBatched; the status."""
        return int(self._library.nvjpegDecodeBatched(self._handle, state, files.data, files.lengths, to, stream))

    def decode(self, state: _pointer, files: Files, to: Any, stream: int) -> None:
        """nvjpegDecodeBatched."""
        if (status := self.try_decode(state, files, to, stream)) != 0:
            raise NvjpegError("nvjpegDecodeBatched", status)

    def try_decode_part(
        self, state: _pointer, files: Files, to: Any, stream: int, *, roi: tuple[int, int, int, int] | None, scale: int
    ) -> int:
        """nvjpegDecodeBatchedEx of one file: (left, top, width, height) of it, or 1/scale; the status."""
        params = self._params(roi, scale)
        try:
            one = (_pointer * 1)(params)
            function = self._library.nvjpegDecodeBatchedEx
            return int(function(self._handle, state, files.data, files.lengths, to, one, stream))
        finally:
            self._call("nvjpegDecodeParamsDestroy", params)

    def supported(self, data: bytes, *, roi: tuple[int, int, int, int] | None = None, scale: int = 1) -> bool:
        """Whether nvjpegDecodeBatchedSupportedEx reports that batched decoding takes this file with these options."""
        params, stream, says = self._params(roi, scale), _pointer(), _int(1)
        self._call("nvjpegJpegStreamCreate", self._handle, ctypes.byref(stream))
        try:
            self._call("nvjpegJpegStreamParseHeader", self._handle, data, len(data), stream)
            self._call("nvjpegDecodeBatchedSupportedEx", self._handle, stream, params, ctypes.byref(says))
        finally:
            self._call("nvjpegJpegStreamDestroy", stream)
            self._call("nvjpegDecodeParamsDestroy", params)
        return says.value == 0  # 0 means yes

    def _params(self, roi: tuple[int, int, int, int] | None, scale: int) -> _pointer:
        params = _pointer()
        self._call("nvjpegDecodeParamsCreate", self._handle, ctypes.byref(params))
        self._call("nvjpegDecodeParamsSetOutputFormat", params, YUV)
        if roi is not None:
            self._call("nvjpegDecodeParamsSetROI", params, *roi)
        if scale != 1:
            self._call("nvjpegDecodeParamsSetScaleFactor", params, SCALES[scale])
        return params


def plane_sizes(header: JpegHeader, *, whole: bool = False) -> list[tuple[int, int]]:
    """(width, height) of each component's samples, from headrace's header of the file; `whole`: for whole iMCUs."""
    size = header["width"], header["height"]
    factors = np.array([(h, v) for _, h, v in header["components"]])
    if len(factors) == 1:  # not interleaved: blocks, whatever its factors are
        return [(-(-size[0] // 8) * 8, -(-size[1] // 8) * 8) if whole else size]
    most = factors.max(axis=0).tolist()
    if whole:
        imcus = [-(-edge // (8 * each)) for edge, each in zip(size, most, strict=True)]
        return [(8 * imcus[0] * h, 8 * imcus[1] * v) for h, v in factors.tolist()]
    return [(-(-size[0] * h // most[0]), -(-size[1] * v // most[1])) for h, v in factors.tolist()]
