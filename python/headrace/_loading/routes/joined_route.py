"""The route on which native threads make images of datasets that are joined and have different transforms."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headrace._base import messages
from headrace._base.messages import PerformanceWarning
from headrace._engine.variants.joined_engine import Joined, JoinedEngine
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.image_route import ImageRoute, source_of
from headrace._loading.routes.route import NativeRoute
from headrace._recipe.steps.draw_columns import AnyColumn, shift_column
from headrace._recipe.steps.recipe import Recipe, Recipes
from headrace.datasets.sources import BlobDataset, NotNative

Int64s = npt.NDArray[np.int64]

_NATIVE_STEPS = "give all of them the same transform, or steps with a native form"
_ONE_OUTPUT = "give all of them outputs of one size, dtype and class"


@dataclass(frozen=True)
class JoinedRoute(NativeRoute):
    """Route on which headrace makes one image a sample, by one of several recipes with outputs of one shape.

    No recipe has a step that runs in Python, so nothing depends on the order in which samples are made.

    Attributes:
        each: a route of the source for each of its variants, as if it were the only one.
        routes: one for each recipe.
        route_of: its number for each variant.
    """

    source: BlobDataset
    each: tuple[ImageRoute, ...]
    routes: tuple[ImageRoute, ...]
    route_of: tuple[int, ...]

    @classmethod
    def of(cls, source: BlobDataset, each: Sequence[ImageRoute], own: OwnSettings) -> JoinedRoute:
        """Returns the route of a source.

        Args:
            each: as the attribute.

        Raises:
            NotNative: the outputs differ, or batches are made elsewhere than in this machine's memory.
        """
        routes: list[ImageRoute] = []
        numbers = []
        for route in each:
            alike = [n for n, one in enumerate(routes) if _are_alike(one.recipe, route.recipe)]
            numbers.append(alike[0] if alike else len(routes))
            routes += [] if alike else [route]
        made = cls(source, tuple(each), tuple(routes), tuple(numbers))
        made._check_outputs()
        if own.destination.way != "memory":
            raise NotNative(
                "the joined datasets have transforms with different results, whose batches are not made on a device; "
                "give them the same transform, or leave out device"
            )
        return made

    def _check_outputs(self) -> None:
        first = self.routes[0].recipe
        for recipe in (one.recipe for one in self.routes):
            if recipe.varies or recipe.variants or recipe.views:
                raise NotNative(
                    "the joined datasets have different transforms, and one makes several images, or images of "
                    f"different sizes; {_ONE_OUTPUT}"
                )
            if (recipe.shape, recipe.dtype, recipe.kinds) != (first.shape, first.dtype, first.kinds):
                raise NotNative(
                    f"the transforms of the joined datasets make {first.dtype} {first.shape} and {recipe.dtype} "
                    f"{recipe.shape}; {_ONE_OUTPUT}"
                )
            if recipe.calls or recipe.texture is not None:
                what = "steps that run in Python" if recipe.calls else "the channels of TextureChannels"
                raise NotNative(f"the joined datasets have different transforms, and one has {what}; {_NATIVE_STEPS}")
            if (recipe.mode, recipe.upright) != (first.mode, first.upright):
                raise NotNative(
                    "the joined datasets have different transforms, and open images in different ways; give them the "
                    "same mode and upright"
                )

    def check(self, own: OwnSettings) -> None:
        own.destination.require_decoder()
        own.refuse_of_videos()

    @functools.cached_property
    def recipes(self) -> Recipes:
        return Recipes({str(number): one.recipe for number, one in enumerate(self.routes)})

    @functools.cached_property
    def product(self) -> Joined:
        return Joined(tuple(self.recipes.values()), self.columns, self.source, self.route_of)

    @property
    def kinds(self) -> object:
        return self.routes[0].kinds

    @property
    def image_parts(self) -> Sequence[tuple[Recipe, BlobDataset]]:
        return [part for one in self.routes for part in one.image_parts]

    @functools.cached_property
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample, those of all recipes: one that replaces another may have another recipe."""
        found: list[AnyColumn] = []
        for route in self.routes:
            found.extend([shift_column(one, len(found)) for one in route.draws])
        return tuple(found)

    @functools.cached_property
    def columns(self) -> tuple[Int64s, ...]:
        """The columns of `draws` that each recipe reads."""
        ends = np.cumsum([len(one.draws) for one in self.routes])
        return tuple(np.arange(end - len(one.draws), end) for end, one in zip(ends, self.routes, strict=True))

    def renew(self, settings: Settings) -> NativeRoute:
        source = self.source if self.source.is_current() else source_of(settings.dataset, self.source)
        if source is self.source:
            kept = settings.persistent_workers
            pairs = zip(self.each, source.variants, strict=True)
            if all(one.is_still_lowered(variant, kept=kept) for one, variant in pairs):
                return self
        return route_of_images(source, settings, may_vary=False, known=self.routes)

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> JoinedEngine:
        if settings.helpers:
            why = "the joined datasets have different transforms"
            messages.warn(f"helpers have no effect: {why}", PerformanceWarning)
        threads = settings.num_workers
        return JoinedEngine(self.product, settings.layout, threads=threads, slots_kept=slots_kept, pin=pin)


def route_of_images(
    source: BlobDataset, own: OwnSettings, *, may_vary: bool, known: Sequence[ImageRoute] = ()
) -> ImageRoute | JoinedRoute:
    """Returns the route of a source of images, whose parts may have different transforms.

    Args:
        known: routes of an earlier epoch; their recipes are used where they are equal: engines know them by identity.

    Raises:
        NotNative, LoweringError: its transforms do not run natively.
    """
    each = ImageRoute.of_each(source, own.dtype, may_vary=may_vary)
    if ImageRoute.are_alike(each):
        return ImageRoute.of_alike(each)
    if may_vary:  # the outputs of all recipes have one size
        each = ImageRoute.of_each(source, own.dtype, may_vary=False)
    return JoinedRoute.of(source, [_with_known_recipe(one, known) for one in each], own)


def _with_known_recipe(route: ImageRoute, known: Sequence[ImageRoute]) -> ImageRoute:
    found = next((one.recipe for one in known if _are_alike(one.recipe, route.recipe)), route.recipe)
    return replace(route, recipe=found)


def _are_alike(one: Recipe, other: Recipe) -> bool:
    return one == other and one.maps_bytes_as(other) and one.kinds == other.kinds
