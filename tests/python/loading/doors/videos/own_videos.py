"""A dataset that calls a video library itself, as programs do, and what a loader says of its indexes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from headrace import DataLoader

with contextlib.suppress(ImportError, RuntimeError, OSError):  # without it, tests are skipped
    from torchcodec.decoders import VideoDecoder


class Own(Dataset[Any]):
    """What programs write themselves."""

    def __init__(self, paths: list[Path], library: str = "torchcodec") -> None:
        self.paths, self.library = paths, library

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path = str(self.paths[index])
        if self.library == "torchcodec":
            return VideoDecoder(path).get_frames_at([3, 30, 7]).data[..., :32, :32]
        import decord

        return torch.from_numpy(decord.VideoReader(path, num_threads=1).get_batch([3, 30, 7]).asnumpy()[:, :32, :32])


def origins(loader: DataLoader[Any]) -> dict[str, int]:
    images = loader.stats().images
    assert images is not None
    return dict(images.origins)


def own_loader(data: Own, **options: Any) -> DataLoader[Any]:
    made = DataLoader(data, 1, **{"num_workers": 2, **options})
    assert made.route == "deferred"
    return made


def found(loader: DataLoader[Any]) -> tuple[int, int, int]:
    """Numbers of files whose index was learned, or found in the memory or in the folder."""
    videos = loader.stats().videos
    assert videos is not None
    return videos.indexes_learned, videos.indexes_from_memory, videos.indexes_from_folder
