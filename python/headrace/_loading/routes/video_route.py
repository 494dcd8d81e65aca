"""The route on which native threads make clips of videos: frames are images with the random numbers of their clip."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Engine
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.image_route import ImageRoute
from headrace._media.library_decoders import install_for_video
from headrace._recipe.steps.draw_columns import AnyColumn, Column, shift_column
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.sources import BlobDataset, NotNative

if TYPE_CHECKING:
    from typing_extensions import Self

    from headrace.datasets.videos.clip_samplers import ClipSampler, DimensionOrder


@dataclass(frozen=True)
class VideoRoute(ImageRoute):
    """Route on which headrace makes one or several clips a sample."""

    @classmethod
    def of(cls, source: BlobDataset, dtype: torch.dtype | None, *, may_vary: bool) -> Self:
        """Returns the route of clips; see `ImageRoute.of`."""
        if len({one.order for one in source.variants}) > 1:
            raise NotNative("the datasets of the ConcatDataset differ in `dimension_order`; give them the same")
        samplers = {one.clips for one in source.variants}
        if len(samplers) > 1:
            raise NotNative("the datasets of the ConcatDataset choose different clips; give them the same `clips`")
        if missing := [name for name in ("torchcodec", "av") if importlib.util.find_spec(name) is None]:
            raise NotNative(f"{' and '.join(missing)} cannot be imported ({install_for_video()})")
        made = super().of(source, dtype, may_vary=False)
        if made.recipe.in_python:
            names = ", ".join(made.recipe.names[number][0] for number in sorted(made.recipe.in_python))
            raise NotNative(f"{names} would be called on single frames, but in torch it gets clips")
        if made.recipe.variants or made.recipe.views:
            raise NotNative("ByAspectRatio, Views and crops that make several images are for images, not for clips")
        return made

    def check(self, own: OwnSettings) -> None:
        own.refuse_decoder_of_images()
        check_device_decoder(own)
        own.refuse_replacing(varies=False)

    @property
    def clips(self) -> ClipSampler:
        """Which frames a sample has."""
        found: ClipSampler = self.source.variants[0].clips
        return found

    @property
    def order(self) -> DimensionOrder:
        """The order of a clip's axes."""
        found: DimensionOrder = self.source.variants[0].order
        return found

    @property
    def product(self) -> Any:
        return self.recipe, self.clips, self.order

    @functools.cached_property
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample: those of each clip's images, then where each clip begins."""
        own, clips = self.recipe.columns, self.clips
        of_images = [shift_column(one, number * len(own)) for number in range(clips.num_clips) for one in own]
        return (*of_images, *(Column() for _ in range(clips.drawn)))

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> Engine:
        from headrace._engine.clip_engine import ClipEngine  # imports av
        from headrace._media.video.device_frames import DeviceFrames

        destination = settings.destination

        def make_images(recipe: Recipe, decoding: Decoding, frames: int) -> Engine:
            return make_engine(
                recipe,
                settings.layout,
                destination.for_videos(),
                threads=settings.num_workers,
                slots_kept=slots_kept,
                pin=pin,
                decoding=decoding,
                frames=frames,
            )

        return ClipEngine(
            self.recipe,
            self.clips,
            self.order,
            settings.layout,
            make_images,
            settings.indexes,
            self.source.ahead_bytes,
            DeviceFrames(destination.device) if destination.decodes_videos else None,
        )


def check_device_decoder(own: OwnSettings) -> None:
    """Raises RuntimeError if a GPU's decoder of videos is asked for, and torchcodec has none."""
    destination = own.destination
    if destination.decodes_videos and not destination.is_emulated:
        from headrace._media.video.device_frames import why_not_on  # imports av

        if why := why_not_on(destination.device):
            raise RuntimeError(f"decoder='hardware' is not available: {why}")
