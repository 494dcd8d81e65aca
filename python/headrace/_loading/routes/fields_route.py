"""The route on which native threads make samples of several fields: one route for each part of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from headrace._engine.fields_engine import FieldsEngine
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.audio_route import AudioRoute
from headrace._loading.routes.columns_route import ColumnsRoute
from headrace._loading.routes.image_route import ImageRoute
from headrace._loading.routes.route import NativeRoute
from headrace._loading.routes.source_route import route_of_source
from headrace._loading.routes.video_route import VideoRoute, check_device_decoder
from headrace._lowering import LoweringError, columns_drawn_by
from headrace._recipe.object_boxes.object_values import BoxPart, ObjectTensor
from headrace._recipe.steps.draw_columns import AnyColumn, shift_column
from headrace._recipe.steps.recipe import Recipe, Recipes
from headrace.datasets.fields.box_fields import why_no_boxes
from headrace.datasets.fields.fields_source import StackedSource, as_stacked
from headrace.datasets.fields.shared_geometry import unequal
from headrace.datasets.sources import BlobDataset, NotNative


@dataclass(frozen=True)
class FieldsRoute(NativeRoute):
    """Route on which headrace makes samples of several fields.

    Attributes:
        images: the routes of the fields that are made of files: images, clips of videos, waveforms; by name.
        shared: number of columns that all recipes begin with: the draws of the geometry.
    """

    source: StackedSource
    images: Mapping[str, ImageRoute | AudioRoute]
    shared: int

    @classmethod
    def of(cls, source: StackedSource) -> FieldsRoute:
        """Returns the route of samples of several fields.

        Raises:
            NotNative, LoweringError: a field does not run natively; the message names it.
        """
        images = _routes_by_name(source, lambda _, one: _route_of_field(one))
        return cls._checked(source, images)

    @classmethod
    def _checked(cls, source: StackedSource, images: Mapping[str, ImageRoute | AudioRoute]) -> FieldsRoute:
        clips = [name for name, route in images.items() if isinstance(route, (VideoRoute, AudioRoute))]
        if clips and source.geometry is not None:
            raise NotNative(f"field {clips[0]!r} has clips, which share no geometry; leave geometry out")
        if followed := [one.image for one in source.boxes.values() if one.image in clips]:
            raise NotNative(f"boxes do not follow clips, as those of {followed[0]!r} are")
        for name, part in source.boxes.items():
            followed_route = images[part.image]
            assert isinstance(followed_route, ImageRoute)
            if why := why_no_boxes(followed_route.recipe):
                raise NotNative(f"field {name!r} follows {part.image!r}: {why}")
        return cls(source, images, _count_shared(source, images))

    @functools.cached_property
    def recipes(self) -> Recipes:
        return Recipes({name: one.recipe for name, one in self.images.items() if isinstance(one, ImageRoute)})

    @property
    def kinds(self) -> dict[str, object]:
        kinds: dict[str, object] = {name: one.kinds for name, one in self.images.items()}
        kinds |= {name: ObjectTensor for part in self.boxes for name in part.names}
        return dict.fromkeys(self.source.columns, torch.Tensor) | kinds

    @functools.cached_property
    def boxes(self) -> tuple[BoxPart, ...]:
        """The boxes, with the steps of their images."""
        found = self.source.boxes.values()
        return tuple(replace(one, steps=self.recipes[one.image].steps) for one in found)

    @property
    def image_parts(self) -> Sequence[tuple[Recipe, BlobDataset]]:
        return [part for one in self.images.values() for part in one.image_parts]

    @property
    def parts(self) -> dict[str, NativeRoute]:
        """The routes of all parts, by name."""
        return {**self.images, **{name: ColumnsRoute(one) for name, one in self.source.columns.items()}}

    @property
    def product(self) -> dict[str, object]:
        return {name: part.product for name, part in self.parts.items()} | {one.name: one for one in self.boxes}

    @functools.cached_property
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample: those of the geometry, then those of each field's own transform."""
        found: list[AnyColumn] = []
        for route in self.images.values():
            own = route.draws if not found else route.draws[self.shared :]
            by = len(found) - (len(route.draws) - len(own))
            found.extend(shift_column(one, by) for one in own)
        return tuple(found)

    @functools.cached_property
    def columns(self) -> dict[str, npt.NDArray[np.int64]]:
        """The columns of `draws` that each part reads."""
        found, end = {}, self.shared
        for name, route in self.images.items():
            own = len(route.draws) - self.shared
            found[name] = np.r_[0 : self.shared, end : end + own]
            end += own
        return {**found, **dict.fromkeys(self.source.columns, np.r_[0:0])}

    def check(self, own: OwnSettings) -> None:
        """Raises TypeError if a setting is for datasets of one image a sample, RuntimeError if a decoder of the device
        is not available."""
        videos = [one for one in self.images.values() if isinstance(one, VideoRoute)]
        if any(type(one) is ImageRoute for one in self.images.values()):
            own.destination.require_decoder()
        elif videos:
            own.refuse_decoder_of_images()
        if videos:
            check_device_decoder(own)
        if own.dtype is not None:
            raise TypeError(
                f"dtype={own.dtype} would change images and masks alike; end the transform of each field that needs it "
                "with ToDtype"
            )

    def renew(self, settings: Settings) -> FieldsRoute:
        source = self.source if self.source.is_current() else as_stacked(settings.dataset, self.source)
        if source is None:
            raise NotNative("the dataset has no fields any more")
        if list(source.images) != list(self.images):
            return FieldsRoute.of(source)
        images = _routes_by_name(source, functools.partial(self._renew_field, settings))
        if source is self.source and all(images[name] is one for name, one in self.images.items()):
            return self
        return FieldsRoute._checked(source, images)

    def _renew_field(self, settings: Settings, name: str, source: BlobDataset) -> ImageRoute | AudioRoute:
        route = self.images[name]
        if isinstance(route, AudioRoute):
            return route.renewed_for(source)
        return route.renewed_for(source, settings, may_vary=False)

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> FieldsEngine:
        destination, parts = settings.destination, {}
        for name, part in self.parts.items():
            copied = part.staged and destination.device.type == "cuda"
            parts[name] = part.new_engine(settings, slots_kept=slots_kept, pin=pin or copied)
        sizes_differ = None if self.source.geometry is None else unequal
        return FieldsEngine(parts, self.columns, destination, sizes_differ, self.boxes)


def _route_of_field(source: BlobDataset) -> ImageRoute | AudioRoute:
    return route_of_source(source, None, may_vary=False)


def _routes_by_name(
    source: StackedSource, route_of: Callable[[str, BlobDataset], ImageRoute | AudioRoute]
) -> dict[str, ImageRoute | AudioRoute]:
    """Returns the routes of the fields that are made of files."""
    routes: dict[str, ImageRoute | AudioRoute] = {}
    for name, one in source.images.items():
        try:
            routes[name] = route = route_of(name, one)
        except (NotNative, LoweringError) as refusal:
            raise NotNative(f"field {name!r}: {refusal}") from refusal
        if isinstance(route, ImageRoute) and route.recipe.variants:
            raise NotNative(
                f"field {name!r}: ByAspectRatio gives a batch one size of several, which fields do not share"
            )
    return routes


def _count_shared(source: StackedSource, images: Mapping[str, ImageRoute | AudioRoute]) -> int:
    """Returns the number of columns of the geometry. Raises NotNative if they differ between fields."""
    if source.geometry is None:
        return 0
    found = set()
    for name, route in images.items():
        assert isinstance(route, ImageRoute)
        image = route.source.variants[0]
        transform = source.geometry.transform_of(name)
        columns = columns_drawn_by(transform, channels=image.channels, size=image.size, mode=image.mode)
        found.add(columns)
        if len(found) > 1 or route.recipe.columns[: len(columns)] != columns:
            raise NotNative(f"field {name!r}: the geometry draws other random numbers for it than for other fields")
    return len(found.pop())
