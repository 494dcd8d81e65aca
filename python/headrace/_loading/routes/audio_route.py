"""The route on which native threads make clips of audio files."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headrace._engine.audio.audio_engine import AudioEngine
from headrace._engine.engine import Engine
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.route import NativeRoute
from headrace._media.audio.audio_clip import AudioClip
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.sources import BlobDataset, NotNative, as_source


@dataclass(frozen=True)
class AudioRoute(NativeRoute):
    """Route on which headrace makes one waveform a sample.

    Attributes:
        clip: which part of a file a sample is.
    """

    source: BlobDataset
    clip: AudioClip
    recipes = None
    staged = True

    @classmethod
    def of(cls, source: BlobDataset) -> AudioRoute:
        """Returns the route of a source of audio.

        Raises:
            NotNative: its samples have no common shape.
        """
        clips = [one.clips for one in source.variants]
        if any(one != clips[0] for one in clips):
            raise NotNative(
                "the datasets of the ConcatDataset have clips of different kinds; give them the same seconds, "
                "sample_rate, crop, num_channels and lengths"
            )
        if any(one.transform is not None for one in source.variants):
            raise NotNative(
                "a transform was set on the dataset of audio, which native threads do not call; give out_transform, "
                "which gets each batch"
            )
        if clips[0].samples is None:
            raise NotNative("whole audio files have different lengths; seconds= makes clips of one length")
        return cls(source, clips[0])

    @property
    def product(self) -> AudioClip:
        return self.clip

    @property
    def kinds(self) -> object:
        return (torch.Tensor, int) if self.clip.lengths else torch.Tensor

    @property
    def draws(self) -> tuple[AnyColumn, ...]:
        return self.clip.columns

    @property
    def image_parts(self) -> Sequence[tuple[Recipe, BlobDataset]]:
        """A recipe without steps, for the functions of labels: a waveform has no transforms."""
        return [(_no_steps(), self.source)]

    def check(self, own: OwnSettings) -> None:
        own.refuse_of_images("applies to images, but this dataset's samples are waveforms; leave it out", ("device",))

    def renew(self, settings: Settings) -> AudioRoute:
        source = self.source if self.source.is_current() else as_source(settings.dataset, self.source)
        return self.renewed_for(source)

    def renewed_for(self, source: BlobDataset) -> AudioRoute:
        """Returns the route of `source` in the next epoch: this one, unless the source or its clips have changed."""
        made = AudioRoute.of(source)
        return self if source is self.source and made.clip == self.clip else made

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> Engine:
        destination = settings.destination
        pin = pin or destination.device.type == "cuda"
        return AudioEngine(self.clip, destination, threads=settings.num_workers, slots_kept=slots_kept, pin=pin)


@functools.cache
def _no_steps() -> Recipe:
    return Recipe((), (), 1, 1, 1, Pointwise((), None), torch.zeros((1, 256), dtype=torch.float32, device="cpu"))
