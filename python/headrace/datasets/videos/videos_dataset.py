"""A dataset of clips of videos: files, objects in other machines, or the encoded samples of another dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.checks import explained
from headrace._base.messages import public_name_of
from headrace._base.native import core
from headrace._base.types import Array, State
from headrace._media.library_decoders import open_decoder
from headrace._storage.local_cache.local_caches import LocalBytes
from headrace._storage.parts.sample_bytes import HeldBytes, SampleBytes
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace.datasets.sources.dataset import BlobDataset, Variant
from headrace.datasets.sources.image_files import ImageFiles
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.datasets.videos.clip_samplers import ClipSampler, DimensionOrder
from headrace.datasets.videos.video_names import name_samples

ENDINGS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".ts", ".mpg", ".mpeg")


class Videos(BlobDataset):
    """Clips of videos, with the videos' labels.

    ``dataset[i]`` decodes frames of video i by torchcodec in its exact mode, uint8 (T, C, H, W), calls `transform` on
    them, and `target_transform` on the label. If `clips` chooses several clips of a file, `transform` is called on each
    of them, with random numbers of its own, and the results are stacked: (clips, T, C, H, W).

    A `DataLoader` makes equal clips in its threads. They decode no frame that no wanted one needs, and resize and
    normalise all frames of a clip with the same random numbers, into the batch's memory: (n, T, C, H, W), or
    (n, clips, T, C, H, W). Of videos in other machines they fetch the bytes of these frames; ``dataset[i]`` reads the
    whole video.

    Args:
        paths: the files, in the order of the dataset; or URLs of objects in other machines, which fsspec reads; or a
            dataset of headrace that locates encoded samples, whose `image` names the member or the column of videos:
            ``TarShards(urls, image="mp4")``, ``from_hf(dataset, image="video")``, ``Parquet(files, image="video")``,
            ``EncodedImages(blobs)``. The first video stream that FFmpeg calls the best is decoded.
        labels: one per file. None: samples are clips without labels, or with those of the dataset.
        transform: called on a uint8 tensor (T, C, H, W), as torchvision's transforms can be.
        target_transform: called on a label.
        clips: which frames a sample has: ``clips_at_random_indices(...)``, ``clips_at_regular_indices(...)``,
            ``clips_at_random_timestamps(...)`` or ``uniform_frames(...)``, all in `headrace.datasets`.
        dimension_order: axes of a clip after `transform`, which gets (T, C, H, W) in any case. ``"TCHW"``: as they are.
            ``"CTHW"``, as most models of videos take them: what `transform` returns is transposed, and contiguous; the
            loader writes it in this order at once. With ``memory_format=torch.channels_last``, a batch of these is
            ``torch.channels_last_3d``.
        cache, storage_options, network: of URLs, as in `ImageFiles`.

    Raises:
        ImportError: fsspec, or the package for a protocol, is not installed.
        TypeError: `paths` is a single path or another kind of dataset, or `clips` is something else.
        ValueError: the numbers of paths and labels differ, `paths` holds URLs and files or a path with a zero byte, an
            argument of URLs is given for files, an argument that belongs to the dataset is given beside one, or
            `dimension_order` is another one.
    """

    @explained()
    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]] | BlobDataset,
        labels: Sequence[object] | Array | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        clips: ClipSampler,
        dimension_order: DimensionOrder = "TCHW",
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        if not isinstance(clips, ClipSampler):
            raise TypeError(
                "clips must say which frames a sample has, such as headrace.datasets.clips_at_random_indices("
                f"num_frames_per_clip=16), not {clips!r}"
            )
        if dimension_order not in get_args(DimensionOrder):
            raise ValueError(f"dimension_order must be 'TCHW' or 'CTHW', not {dimension_order!r}")
        self._dimension_order: DimensionOrder = dimension_order
        own: dict[str, object] = {"labels": labels, "target_transform": target_transform}
        own |= {"cache": cache, "storage_options": storage_options, "network": network}
        if isinstance(paths, BlobDataset):
            _check_encoded(paths, [name for name, value in own.items() if value is not None])
            self.source: BlobDataset = paths
        else:
            self.source = ImageFiles(paths, labels, cache=cache, storage_options=storage_options, network=network)
        super().__init__(labels, transform, target_transform)
        _check_uncached(self.source)
        self.clips: ClipSampler = clips
        clips.check_length(len(self.source))
        self._bytes = object()  # stands for those of this dataset

    def __len__(self) -> int:
        return len(self.source)

    def file(self, index: int) -> str | SampleBytes:
        found = self.source.file(index)
        if isinstance(found, HeldBytes):
            found.key = self._bytes, index
        return found

    def read(self, index: int) -> bytes:
        return self.source.read(index)

    @property
    def dimension_order(self) -> DimensionOrder:
        """The order of a clip's axes."""
        return self._dimension_order

    def _open(self, index: int, **options: Any) -> Any:
        return open_decoder("VideoDecoder", file_for_library(self.source, index), num_ffmpeg_threads=1, **options)

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
        return f"{self.source.identity(index)}: {self.clips.identity(index)}"

    def location(self, index: int) -> str:
        return self.source.location(index)

    @property
    def ahead_bytes(self) -> int:
        return self.source.ahead_bytes

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        return self.source.expect_targets(indices, wait)  # which bytes of videos are needed follows from their indexes

    def expect_targets(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        return self.source.expect_targets(indices, wait)

    @property
    def has_targets(self) -> bool:
        return super().has_targets or self.source.has_targets

    def target(self, index: int) -> Any:
        return super().target(index) if super().has_targets else self.source.target(index)

    def label(self, index: int) -> object:
        return super().label(index) if super().has_targets else self.source.label(index)

    def numbers(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        return super().numbers(indices) if super().has_targets else self.source.numbers(indices)

    def numbers_to_hash(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        return super().numbers_to_hash(indices) if super().has_targets else self.source.numbers_to_hash(indices)

    def targets_of(self, indices: npt.NDArray[np.int64]) -> object:
        return super().targets_of(indices) if super().has_targets else self.source.targets_of(indices)

    @property
    def storage_identity(self) -> object:
        return self._bytes

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(one._replace(clips=self.clips, order=self._dimension_order) for one in super().variants)

    def blob_table(self) -> core.BlobTable:
        """Returns a table whose rows say which video a sample is of; see `video_names`."""
        return name_samples(self)

    def __getstate__(self) -> State:
        return {**self.__dict__, "_bytes": None}

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(state, _bytes=object())

    def __repr__(self) -> str:
        what = f"{len(self)} files" if isinstance(self.source, ImageFiles) else repr(self.source)
        return f"{type(self).__name__}({what}, {self.clips!r})"


def file_for_library(source: BlobDataset, index: int) -> str | bytes:
    """Returns what a library gets to open a sample: its path, or all of its bytes. Raises OSError."""
    found = source.file(index)
    return found if isinstance(found, str) else source.read(index)


def _check_encoded(source: BlobDataset, beside: list[str]) -> None:
    """Raises TypeError or ValueError unless the samples of a dataset can be encoded videos.

    Args:
        beside: arguments that are given beside it.
    """
    name = public_name_of(type(source))
    if any(one.clips is not None for one in source.variants) or not source.encoded:
        raise TypeError(
            f"{name} does not locate encoded videos; pass paths, URLs, or a dataset that does, such as "
            'headrace.TarShards(urls, image="mp4")'
        )
    if beside:
        raise ValueError(f"give {' and '.join(beside)} to {name}, which locates the videos, not beside it")
    if source.transform is not None:
        raise ValueError(f"{name} has a transform, which would get images: give transform to Videos instead")
    if source.mode != "RGB":
        raise ValueError(f"mode={source.mode!r} of {name} is for images: frames are RGB; leave it out")


def _check_uncached(source: BlobDataset) -> None:
    if any(isinstance(value, LocalBytes) for value in vars(source).values()):
        raise ValueError(
            "cache= keeps whole encoded files, and of videos in this machine only parts are read: leave it out"
        )


def find_videos(folder: Path) -> list[str]:
    """Returns the paths of the video files in a folder and those below it; none if there are images among them."""
    names = [one for one in folder.rglob("*") if one.name.lower().endswith((*ENDINGS, *EXTENSIONS)) and one.is_file()]
    if any(one.name.lower().endswith(EXTENSIONS) for one in names):
        return []
    return sorted(map(str, names))
