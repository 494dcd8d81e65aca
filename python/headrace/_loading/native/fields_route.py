"""The route on which native threads make samples of several fields: one route for each part of them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.originals.relied_functions import Relied
from headrace._loading.native.columns_route import Gathered
from headrace._loading.native.settings import OwnSettings
from headrace._lowering import LoweringError, drawn_by
from headrace._recipe.steps.draw_columns import (
    AnyColumn,
    ChainWeights,
    Column,
    Normal,
    PolicyNumber,
    SumWeights,
    WarpNumber,
)
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.fields.fields_source import StackedSource, as_stacked
from headrace.datasets.sources import BlobDataset, NotNative


class ImageRoute(Protocol):
    """The route of one field of images."""

    @property
    def source(self) -> BlobDataset: ...

    @property
    def recipe(self) -> Recipe: ...


class Recipes(dict[str, Recipe]):
    """The recipes of the image fields, by name."""

    def fingerprint(self) -> str:
        """Returns a hash of all recipes, 16 hex digits."""
        each = [(name, recipe.fingerprint()) for name, recipe in self.items()]
        return hashlib.sha256(repr(each).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Stacked:
    """Route on which headrace makes samples of several fields.

    Attributes:
        source: locates the fields.
        images: the routes of the image fields, by name.
        shared: number of columns that all recipes begin with: the draws of the geometry.
        relied: the libraries' functions that it stands for.
    """

    source: StackedSource
    images: Mapping[str, Any]
    shared: int
    relied: Relied | None = field(default=None, compare=False)

    @functools.cached_property
    def recipe(self) -> Recipes:
        """The recipes of the image fields."""
        return Recipes({name: route.recipe for name, route in self.images.items()})

    @property
    def kinds(self) -> dict[str, Any]:
        """The classes of a sample's tensors, by part."""
        kinds: dict[str, Any] = {name: recipe.kinds for name, recipe in self.recipe.items()}
        return dict.fromkeys(self.source.columns, torch.Tensor) | kinds

    @property
    def parts(self) -> dict[str, Any]:
        """The routes of all parts, by name."""
        return {**self.images, **{name: Gathered(one) for name, one in self.source.columns.items()}}

    @property
    def product(self) -> dict[str, Any]:
        """What an engine has to fit to make the batches, by part."""
        return {name: part.product for name, part in self.parts.items()}

    @functools.cached_property
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample: those of the geometry, then those of each field's own transform."""
        found: list[AnyColumn] = []
        for recipe in self.recipe.values():
            own = recipe.columns if not found else recipe.columns[self.shared :]
            by = len(found) - (len(recipe.columns) - len(own))
            found.extend(_moved(one, by) for one in own)
        return tuple(found)

    @functools.cached_property
    def columns(self) -> dict[str, npt.NDArray[np.int64]]:
        """The columns of `draws` that each part reads."""
        found, end = {}, self.shared
        for name, recipe in self.recipe.items():
            own = len(recipe.columns) - self.shared
            found[name] = np.r_[0 : self.shared, end : end + own]
            end += own
        return {**found, **dict.fromkeys(self.source.columns, np.r_[0:0])}

    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the source; cached because it reads samples."""
        return self.source.fingerprint()

    def check(self, own: OwnSettings) -> None:
        """Raises TypeError if a setting is for datasets of one image a sample."""
        if own.dtype is not None:
            raise TypeError(
                f"dtype={own.dtype} would change images and masks alike; end the transform of each field that needs it "
                "with ToDtype"
            )

    def renewed(
        self, dataset: object, renew: Callable[[Any, BlobDataset], Any], make: Callable[[BlobDataset], Any]
    ) -> Stacked:
        """Returns the route of the next epoch.

        Args:
            renew: returns the route of an image field of the next epoch, from its route and source now.
            make: returns the route of an image field that there was not.

        Raises:
            NotNative, LoweringError: it does not run natively any more.
        """
        source = self.source if self.source.is_current() else as_stacked(dataset, self.source)
        if source is None:
            raise NotNative("the dataset has no fields any more")
        if list(source.images) != list(self.images):
            return stacked(source, make)
        images = {
            name: _of_field(name, lambda name=name, one=one: renew(self.images[name], one))  # type: ignore[misc]
            for name, one in source.images.items()
        }
        if source is self.source and all(images[name] is self.images[name] for name in images):
            return self
        return Stacked(source, images, _shared(source, images))


def stacked(source: StackedSource, route_of: Callable[[BlobDataset], ImageRoute]) -> Stacked:
    """Returns the route of samples of several fields.

    Args:
        route_of: returns the route of an image source.

    Raises:
        NotNative, LoweringError: a field does not run natively; the message names it.
    """
    images = {
        name: _of_field(name, lambda one=one: route_of(one))  # type: ignore[misc]
        for name, one in source.images.items()
    }
    return Stacked(source, images, _shared(source, images))


def _of_field(name: str, make: Callable[[], Any]) -> Any:
    try:
        route = make()
    except (NotNative, LoweringError) as refusal:
        raise NotNative(f"field {name!r}: {refusal}") from refusal
    if route.recipe.variants:
        raise NotNative(f"field {name!r}: ByAspectRatio gives a batch one size of several, which fields do not share")
    return route


def _shared(source: StackedSource, images: Mapping[str, Any]) -> int:
    """Returns the number of columns of the geometry. Raises NotNative if they differ between fields."""
    if source.geometry is None:
        return 0
    found = set()
    for name, route in images.items():
        image = route.source.variants[0]
        transform = source.geometry.of(name)
        columns = drawn_by(transform, channels=image.channels, size=image.size, mode=image.mode)
        found.add(columns)
        if len(found) > 1 or route.recipe.columns[: len(columns)] != columns:
            raise NotNative(f"field {name!r}: the geometry draws other random numbers for it than for other fields")
    return len(found.pop())


def _moved(column: AnyColumn, by: int) -> AnyColumn:
    """Returns a column of a recipe whose columns begin `by` places later."""
    if isinstance(column, (Column, Normal)):
        return column
    if isinstance(column, PolicyNumber):
        magnitude = replace(column.magnitude, draw=column.magnitude.draw + by)
        among = None if column.among is None else (column.among[0] + by, *column.among[1:])
        return replace(column, magnitude=magnitude, way=column.way + by, among=among)
    if isinstance(column, (ChainWeights, SumWeights, WarpNumber)):
        return replace(column, drawn=column.drawn + by, first=column.first + by)
    return replace(column, sigma=column.sigma + by, first=column.first + by)
