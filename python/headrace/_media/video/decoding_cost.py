"""How many frames have to be decoded for those that are wanted, and how many with more key frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from headrace._media.video.packet_index import PacketIndex

SHORT_GROUP = 16  # frames from key frame to key frame


@dataclass(frozen=True)
class DecodingCost:
    """Numbers of frames.

    Attributes:
        wanted: different frames that samples consist of.
        decoded: that the decoder got for them.
        with_short_groups: that it would get, about, if each `SHORT_GROUP`-th frame were a key frame.
    """

    wanted: int = 0
    decoded: int = 0
    with_short_groups: float = 0.0

    def __add__(self, other: DecodingCost) -> DecodingCost:
        return DecodingCost(
            self.wanted + other.wanted,
            self.decoded + other.decoded,
            self.with_short_groups + other.with_short_groups,
        )

    def __sub__(self, other: DecodingCost) -> DecodingCost:
        return DecodingCost(
            self.wanted - other.wanted,
            self.decoded - other.decoded,
            self.with_short_groups - other.with_short_groups,
        )

    def __str__(self) -> str:
        each = self.decoded / max(1, self.wanted)
        said = f"videos: {self.wanted:,} frames wanted, {self.decoded:,} decoded, {each:.1f} for each"
        short = self.with_short_groups / max(1, self.wanted)
        if each < 1.5 * short:
            return said
        return f"{said}; with a key frame every {SHORT_GROUP} frames (ffmpeg -g {SHORT_GROUP}) about {short:.1f}"


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
