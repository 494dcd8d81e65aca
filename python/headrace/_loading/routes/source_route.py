"""The route of one source: of images, of clips of videos, or of audio."""

from __future__ import annotations

import torch

from headrace._loading.native.settings import OwnSettings
from headrace._loading.routes.audio_route import AudioRoute
from headrace._loading.routes.image_route import ImageRoute
from headrace._loading.routes.joined_route import route_of_images
from headrace._loading.routes.route import NativeRoute
from headrace._loading.routes.video_route import VideoRoute
from headrace._media.audio.audio_clip import AudioClip
from headrace.datasets.sources import BlobDataset, NotNative
from headrace.datasets.sources.dataset import Variant


def route_of_source(source: BlobDataset, dtype: torch.dtype | None, *, may_vary: bool) -> ImageRoute | AudioRoute:
    """Returns the route of a source; see `ImageRoute.of`.

    Raises:
        NotNative, LoweringError: its samples are not made natively.
    """
    kinds = {_kind_of(one) for one in source.variants}
    if len(kinds) > 1:
        raise NotNative(f"the ConcatDataset joins {' and '.join(sorted(kinds))}; join only one of them")
    if kinds == {"audio"}:
        return AudioRoute.of(source)
    route = ImageRoute if kinds == {"images"} else VideoRoute
    return route.of(source, dtype, may_vary=may_vary)


def route_of_dataset(source: BlobDataset, own: OwnSettings, *, may_vary: bool) -> NativeRoute:
    """Returns the route of a dataset's source, also of images whose parts have different transforms.

    Raises:
        NotNative, LoweringError: its samples are not made natively.
    """
    if all(_kind_of(one) == "images" for one in source.variants):
        return route_of_images(source, own, may_vary=may_vary)
    return route_of_source(source, own.dtype, may_vary=may_vary)


def is_audio(source: BlobDataset) -> bool:
    """Returns whether all samples of a source are waveforms."""
    return all(_kind_of(one) == "audio" for one in source.variants)


def _kind_of(variant: Variant) -> str:
    if variant.clips is None:
        return "images"
    return "audio" if isinstance(variant.clips, AudioClip) else "videos"
