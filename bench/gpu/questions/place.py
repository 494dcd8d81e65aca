"""Memory and streams for the questions about nvJPEG: on a GPU, or on the host for a double of nvJPEG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.gpu.questions.nvjpeg import Files, images, plane_sizes
from headrace._base.native import core

POISON = 0xA5


class Place:
    """`device` is "cuda", or "cpu" for a double of nvJPEG that decodes into host memory."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"

    def stream(self) -> Any:
        """A new stream that waits for no other; None without a GPU."""
        return torch.cuda.Stream() if self.cuda else None

    def current(self) -> Any:
        """torch's current stream."""
        return torch.cuda.current_stream() if self.cuda else None

    def handle(self, stream: Any) -> int:
        """The stream's handle for nvJPEG."""
        return 0 if stream is None else int(stream.cuda_stream)

    def finish(self, stream: Any) -> None:
        """Waits for the work on the stream."""
        if stream is not None:
            stream.synchronize()

    def memory(self, size: int, fill: int | None = None) -> torch.Tensor:
        """Bytes on the device, all equal to `fill` if it is given."""
        made = torch.empty(size, dtype=torch.uint8, device=self.device)
        return made if fill is None else made.fill_(fill)

    def encoded(self, files: Sequence[bytes], kind: str) -> tuple[Files, torch.Tensor]:
        """The files, packed into "pinned", "pageable" or "device" memory, and that memory."""
        starts = np.cumsum([0, *((len(data) + 255) // 256 * 256 for data in files)]).tolist()
        packed = torch.empty(starts[-1], dtype=torch.uint8, pin_memory=self.cuda and kind == "pinned")
        for at, data in zip(starts, files, strict=False):
            packed[at : at + len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        if kind == "device":
            packed = packed.to(self.device)
        base = packed.data_ptr()
        return Files.at([base + at for at in starts[:-1]], [len(data) for data in files]), packed


class Room(NamedTuple):
    """A plane in memory, its size, and its size in whole iMCUs of the file."""

    offset: int
    pitch: int
    width: int
    height: int
    whole_width: int
    whole_height: int


@dataclass(frozen=True)
class Planes:
    """Memory for the planes of some images, with a margin after each plane that must not be written."""

    memory: torch.Tensor
    at: list[list[Room]]  # by image and plane
    destinations: Any

    MARGIN = 64  # columns and rows

    @classmethod
    def of(cls, place: Place, files: Sequence[bytes], fill: int | None = None) -> Planes:
        """Memory for the planes of whole images."""
        at: list[list[Room]] = []
        size = 0
        for data in files:
            header = core.jpeg_header(data)
            at.append([])
            for real, whole in zip(plane_sizes(header), plane_sizes(header, whole=True), strict=True):
                pitch = (whole[0] + cls.MARGIN + 63) // 64 * 64
                at[-1].append(Room(size, pitch, *real, *whole))
                size += pitch * (whole[1] + cls.MARGIN)
        memory = place.memory(size, fill)
        base = memory.data_ptr()
        to = images([[(base + room.offset, room.pitch) for room in planes] for planes in at])
        return cls(memory, at, to)

    def read(self) -> list[list[np.ndarray[Any, Any]]]:
        """The planes of each image with their margins: (whole_height + MARGIN, pitch) bytes."""
        host = self.memory.cpu().numpy()
        return [[self._rows(host, room) for room in planes] for planes in self.at]

    def _rows(self, host: np.ndarray[Any, Any], room: Room) -> np.ndarray[Any, Any]:
        rows = room.whole_height + self.MARGIN
        return host[room.offset : room.offset + room.pitch * rows].reshape(rows, room.pitch)

    def samples(self) -> list[list[np.ndarray[Any, Any]]]:
        """The planes of each image as (height, width) samples."""
        return [
            [rows[: room.height, : room.width] for rows, room in zip(image, planes, strict=True)]
            for image, planes in zip(self.read(), self.at, strict=True)
        ]

    def written_beyond(self, fill: int) -> list[tuple[int, int]]:
        """For each plane, how far columns and rows beyond its whole iMCUs were written: they no longer hold `fill`."""
        beyond = []
        for image, planes in zip(self.read(), self.at, strict=True):
            for rows, room in zip(image, planes, strict=True):
                columns = (rows[:, room.whole_width :] != fill).any(axis=0)
                below = (rows[room.whole_height :] != fill).any(axis=1)
                beyond.append((_last(columns) + 1, _last(below) + 1))
        return beyond


def _last(which: np.ndarray[Any, Any]) -> int:
    """The last index that is true; -1: none."""
    return int(np.flatnonzero(which).max(initial=-1))
