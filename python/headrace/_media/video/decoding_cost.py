"""How many frames have to be decoded for those that are wanted, and how many with more key frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from headrace._media.video.packet_index import PacketIndex

SHORT_GROUP = 16  # frames from key frame to key frame


@dataclass(frozen=True)
class DecodingCost:
    """Numbers of frames, and of files of which something was not known yet.

    Attributes:
        wanted: different frames that samples consist of.
        decoded: that the decoder got for them.
        with_short_groups: that it would get, about, if each `SHORT_GROUP`-th frame were a key frame.
        indexes_learned: files that were scanned, for an index of their packets.
        indexes_from_memory: whose index was found in the memory that the processes of a loader share.
        indexes_from_folder: whose index was found in the folder of ``DataLoader(video_index=)``.
        on_device: samples that a device decoded, of whose frames nothing else is counted.
        left_to_cpu: those of them that torchcodec decoded on the CPU, because the device does not take the videos.
    """

    wanted: int = 0
    decoded: int = 0
    with_short_groups: float = 0.0
    indexes_learned: int = 0
    indexes_from_memory: int = 0
    indexes_from_folder: int = 0
    on_device: int = 0
    left_to_cpu: int = 0

    @property
    def of_each(self) -> float:
        """Frames that the decoder got for each wanted one."""
        return self.decoded / max(1, self.wanted)

    @property
    def of_each_with_short(self) -> float:
        """The same with short groups."""
        return self.with_short_groups / max(1, self.wanted)

    def __add__(self, other: DecodingCost) -> DecodingCost:
        return DecodingCost(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    def __sub__(self, other: DecodingCost) -> DecodingCost:
        return DecodingCost(**{one.name: getattr(self, one.name) - getattr(other, one.name) for one in fields(self)})

    def __str__(self) -> str:
        origins = say_origins(self.indexes_learned, self.indexes_from_memory, self.indexes_from_folder)
        if self.on_device:
            left = f", {self.left_to_cpu:,} of them by its CPU decoder" if self.left_to_cpu else ""
            return f"videos: {self.on_device:,} samples decoded on the device through torchcodec{left}{origins}"
        said = f"videos: {self.wanted:,} frames wanted, {self.decoded:,} decoded, {self.of_each:.1f} for each"
        if self.of_each < 1.5 * self.of_each_with_short:
            return said + origins
        short = f"about {self.of_each_with_short:.1f}"
        short_groups = f"with a key frame every {SHORT_GROUP} frames (ffmpeg -g {SHORT_GROUP}) {short}"
        return f"{said}; {short_groups}{origins}"


#: What is counted of a file, by where its index comes from: see `KeptVideo.origin`.
CAME_FROM = {
    "": DecodingCost(),
    "learned": DecodingCost(indexes_learned=1),
    "memory": DecodingCost(indexes_from_memory=1),
    "folder": DecodingCost(indexes_from_folder=1),
}


def say_origins(learned: int, from_memory: int, from_folder: int) -> str:
    """Returns where indexes come from, as the end of a sentence; "": all were known."""
    counts = ((learned, "learned"), (from_memory, "found in shared memory"), (from_folder, "found in the folder"))
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    return f"; indexes of files: {said}" if said else ""


def cost_of(index: PacketIndex, numbers: Sequence[int], decoded: int) -> DecodingCost:
    """Returns the cost of frames with these numbers, one or more.

    Args:
        decoded: number of packets that the decoder got.
    """
    between = _frames_between(index, numbers)
    fewest = np.minimum(between, float(np.mean(index.is_reference)) * SHORT_GROUP / 2)
    return DecodingCost(len(between), decoded, len(between) + float(fewest.sum()))


def expected_cost(index: PacketIndex, numbers: Sequence[int]) -> DecodingCost:
    """Returns what decoding frames with these numbers would cost, but for the few that a decoder gets in advance."""
    between = _frames_between(index, numbers)
    return cost_of(index, numbers, len(between) + int(between.sum()))


def _frames_between(index: PacketIndex, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Returns the number of frames that are needed between one wanted frame, or the key frame, and the next."""
    wanted = np.unique(index.order[np.asarray(numbers, np.int64)])
    keys = np.flatnonzero(index.is_key)
    begin = keys[np.maximum(np.searchsorted(keys, wanted, side="right") - 1, 0)]  # of each wanted frame's group
    begin[1:] = np.maximum(begin[1:], wanted[:-1] + 1)
    before = np.concatenate([[0], np.cumsum(index.is_reference)])
    needed: npt.NDArray[np.int64] = before[wanted] - before[begin]
    return needed
