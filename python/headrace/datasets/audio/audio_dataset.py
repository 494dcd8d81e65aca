"""A dataset of audio files: waveforms of one length, or whole files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._media.audio.audio_clip import AudioClip
from headrace.datasets.sources.dataset import BlobDataset, Variant
from headrace.datasets.sources.packed_paths import PackedPaths


class Audio(BlobDataset):
    """Audio files with an optional label each; a sample is a waveform.

    ``dataset[i]`` is the waveform, a float32 tensor (channels, samples) with values in [-1, 1], or a tuple of it and
    the label. torchcodec's ``AudioDecoder`` makes it; a random crop is drawn from torch's default generator.
    ``headrace.DataLoader`` makes the same waveforms in native threads, (n, channels, samples) a batch, with random
    crops that follow from seed, epoch and sample: of plain WAV files (8 to 32-bit integers, float32 and float64) only
    the bytes of the crop are read, straight into the batch; FLAC files are seeked in by libsndfile where ``soundfile``
    is installed; all other files, and those of another rate, are decoded by torchcodec, in Python threads.

    Args:
        paths: files of any format that FFmpeg reads.
        labels: one for each path. In a batch, ints become an int64 tensor; any other type is collated as torch does.
            None: samples are waveforms without labels.
        seconds: length of the waveforms; ``round(seconds * sample_rate)`` samples. A shorter file is padded with zeros
            at its end. None: whole files, of different lengths, which torch's DataLoader delivers.
        sample_rate: rate of the waveforms in Hz; files of another rate are resampled, as by torchcodec. None, for whole
            files alone: each file's own.
        crop: which part of a longer file: ``"random"``, ``"center"`` or ``"start"``.
        num_channels: channels of the waveforms; files of another number are mixed, as by torchcodec. None, for whole
            files alone: each file's own.
        lengths: whether a sample is ``(waveform, length)`` in place of the waveform: the number of samples before the
            padding. In a batch, an int64 tensor (n,): ``torch.arange(samples) < length[:, None]`` is the mask.
        target_transform: called on a label.

    Raises:
        TypeError: `paths` is one path, or `labels` has no length.
        ValueError: `labels` has another length than `paths`, an argument has no meaning, or a path is a URL.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        labels: Sequence[object] | Array | torch.Tensor | None = None,
        *,
        seconds: float | None = None,
        sample_rate: int | None = None,
        crop: str = "random",
        num_channels: int | None = 1,
        lengths: bool = False,
        target_transform: Callable[[Any], object] | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(f"paths must be a list of paths, not one path: {paths!r}")
        super().__init__(labels, None, target_transform)
        self.paths: PackedPaths = paths if isinstance(paths, PackedPaths) else PackedPaths(paths)
        if labels is not None and len(labels) != len(self.paths):
            raise ValueError(f"there are {len(self.paths)} paths but {len(labels)} labels: give one for each path")
        if b"://" in self.paths.packed:
            raise ValueError("paths must be files of this machine, not URLs: copy them, or mount the storage")
        self._clip = AudioClip.checked(seconds, sample_rate, num_channels, crop, lengths)

    def __len__(self) -> int:
        return len(self.paths)

    def image(self, index: int) -> Any:
        """Returns the waveform of a sample, with a random crop drawn from torch's default generator."""
        draw = torch.rand((), dtype=torch.float64).item() if self._clip.draws else 0.0
        return self.waveform(index, draw)

    def waveform(self, index: int, draw: float) -> torch.Tensor | tuple[torch.Tensor, int]:
        """Returns a sample's waveform, or with `lengths` a tuple of it and its length.

        Args:
            draw: place of a random crop, in [0, 1).
        """
        from headrace._oracle.audio import reference_clip  # native threads do not need it

        return reference_clip(self.paths[index], self._clip, draw)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return (Variant(self.transform, self._clip.channels or 0, None, clips=self._clip),)

    @property
    def encoded(self) -> bool:
        """Whether the samples are encoded images: they are not."""
        return False

    def metadata(self, index: int) -> dict[object, object]:
        """Returns nothing: images alone have Pillow's metadata."""
        return {}

    def identity(self, index: int) -> str:
        return f"{'/'.join(self.location(index).split('/')[-2:])}: {self._clip}"

    def location(self, index: int) -> str:
        return self.paths[index]

    @property
    def storage_identity(self) -> object:
        return self.paths

    def blob_table(self) -> core.BlobTable:
        return core.BlobTable.of_files(self.paths.packed, self.paths.offsets)

    def __repr__(self) -> str:
        return f"Audio({len(self)} files, {self._clip})"
