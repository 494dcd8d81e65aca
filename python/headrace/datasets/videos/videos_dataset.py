"""A dataset of clips of video files, given as a list of paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from headrace._base.checks import explained
from headrace._base.native import core
from headrace._base.types import Array
from headrace._media.library_decoders import open_decoder
from headrace._storage.remote.urls import all_urls
from headrace.datasets.sources.dataset import BlobDataset, Variant
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.datasets.sources.packed_paths import PackedPaths
from headrace.datasets.videos.clip_samplers import ClipSampler, DimensionOrder
from headrace.datasets.videos.video_names import pack_names

ENDINGS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".ts", ".mpg", ".mpeg")


class Videos(BlobDataset):
    """Clips of video files, with the files' labels.

    ``dataset[i]`` decodes frames of file i by torchcodec in its exact mode, uint8 (T, C, H, W), calls `transform` on
    them, and `target_transform` on the label. If `clips` chooses several clips of a file, `transform` is called on each
    of them, with random numbers of its own, and the results are stacked: (clips, T, C, H, W).

    A `DataLoader` makes equal clips in its threads. They decode no frame that no wanted one needs, and resize and
    normalise all frames of a clip with the same random numbers, into the batch's memory: (n, T, C, H, W), or
    (n, clips, T, C, H, W).

    Args:
        paths: the files, in the order of the dataset. The first video stream that FFmpeg calls the best is decoded.
        labels: one per file. None: samples are clips without labels.
        transform: called on a uint8 tensor (T, C, H, W), as torchvision's transforms can be.
        target_transform: called on a label.
        clips: which frames a sample has: ``clips_at_random_indices(...)``, ``clips_at_regular_indices(...)``,
            ``clips_at_random_timestamps(...)`` or ``uniform_frames(...)``, all in `headrace.datasets`.
        dimension_order: axes of a clip after `transform`, which gets (T, C, H, W) in any case. ``"TCHW"``: as they are.
            ``"CTHW"``, as most models of videos take them: what `transform` returns is transposed, and contiguous; the
            loader writes it in this order at once. With ``memory_format=torch.channels_last``, a batch of these is
            ``torch.channels_last_3d``.

    Raises:
        TypeError: `paths` is a single path, or `clips` is something else.
        ValueError: the numbers of paths and labels differ, a path is a URL or contains a zero byte, or there is no such
            `dimension_order`.
    """

    @explained()
    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        labels: Sequence[object] | Array | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        clips: ClipSampler,
        dimension_order: DimensionOrder = "TCHW",
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(f"paths must be a list of paths, not one path: {paths!r}")
        if not isinstance(clips, ClipSampler):
            raise TypeError(
                "clips must say which frames a sample has, such as headrace.datasets.clips_at_random_indices("
                f"num_frames_per_clip=16), not {clips!r}"
            )
        if dimension_order not in get_args(DimensionOrder):
            raise ValueError(f"dimension_order must be 'TCHW' or 'CTHW', not {dimension_order!r}")
        super().__init__(labels, transform, target_transform)
        self._dimension_order: DimensionOrder = dimension_order
        self.paths: PackedPaths = PackedPaths(paths)
        self.clips: ClipSampler = clips
        clips.check_length(len(self.paths))
        if labels is not None and len(labels) != len(self.paths):
            raise ValueError(f"there are {len(self.paths)} paths but {len(labels)} labels: give one for each path")
        if all_urls(self.paths):
            raise ValueError("videos in other machines are not read: download them first")

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def dimension_order(self) -> DimensionOrder:
        """The order of a clip's axes."""
        return self._dimension_order

    def _open(self, index: int, **options: Any) -> Any:
        return open_decoder("VideoDecoder", self.paths[index], num_ffmpeg_threads=1, **options)

    def image(self, index: int) -> Any:
        """Returns the sample's frames, uint8 (T, C, H, W), or (clips, T, C, H, W)."""
        made = self.clips(self._open(index), index)
        return made if self.clips.num_clips > 1 else made[0]

    def transformed(self, image: Any) -> object:
        if self.clips.num_clips == 1:
            return self._ordered(super().transformed(image))
        made: list[Any] = [self._ordered(super(Videos, self).transformed(clip)) for clip in image]
        return torch.stack(made)

    def _ordered(self, clip: Any) -> Any:
        """Returns a clip with its axes in `dimension_order`."""
        return clip if self._dimension_order == "TCHW" else clip.transpose(0, 1).contiguous()

    def metadata(self, index: int) -> dict[object, object]:
        return {}

    def image_size(self, index: int) -> tuple[int, int]:
        found = self._open(index, seek_mode="approximate").metadata
        return found.height, found.width

    def identity(self, index: int) -> str:
        return f"{'/'.join(self.location(index).split('/')[-2:])}: {self.clips.identity(index)}"

    def location(self, index: int) -> str:
        return self.paths[index]

    @property
    def storage_identity(self) -> object:
        return self.paths

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(one._replace(clips=self.clips, order=self._dimension_order) for one in super().variants)

    def blob_table(self) -> core.BlobTable:
        """Returns a table whose rows say which video a sample is of; see `video_names`."""
        packed, begins = pack_names(self.paths)
        sizes = np.diff(begins)
        return core.BlobTable.of_spans([packed], np.zeros(len(self), np.int64), begins[:-1], sizes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} files, {self.clips!r})"


def find_videos(folder: Path) -> list[str]:
    """Returns the paths of the video files in a folder and those below it; none if there are images among them."""
    names = [one for one in folder.rglob("*") if one.name.lower().endswith((*ENDINGS, *EXTENSIONS)) and one.is_file()]
    if any(one.name.lower().endswith(EXTENSIONS) for one in names):
        return []
    return sorted(map(str, names))
