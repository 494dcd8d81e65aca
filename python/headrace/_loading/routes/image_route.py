"""The route on which native threads make samples of one image."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from headrace._base import messages
from headrace._base.messages import PerformanceWarning
from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Engine
from headrace._engine.image_engine import ImageEngine
from headrace._engine.ragged_engine import RaggedEngine
from headrace._engine.variants.bucketed_engine import BucketedEngine
from headrace._engine.views_engine import make_views_engine
from headrace._helpers.helper_lane import add_helpers
from headrace._helpers.ray_helpers import addresses_of
from headrace._helpers.requests import RowRequests
from headrace._loading.collate import collate_call
from headrace._loading.epoch.sampler_setup import sizes_known_to
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.route import Batches, NativeRoute
from headrace._lowering import lower
from headrace._lowering.libraries.albumentations_wrappers import wrapped_compose
from headrace._lowering.multi_output.crops import called_after_crops
from headrace._lowering.python_steps.bytecode_analysis import Reach
from headrace._lowering.transform_library import attributes, leaf_transforms
from headrace._recipe.steps.aspect_sizes import nearest_of
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import Recipe
from headrace._recipe.steps.recipe_text import NotText, write_recipe
from headrace.datasets.sources import BlobDataset, NotNative, Variant, as_source
from headrace.datasets.tar_stream.loader_hooks import stream_source
from headrace.datasets.tar_stream.stream_source import StreamSource
from headrace.transforms import Compose, PILToTensor

if TYPE_CHECKING:
    from typing_extensions import Self


class DifferentResults(NotNative):
    """The transforms of joined datasets make no common recipe."""


@dataclass(frozen=True)
class Lowered:
    """A transform, and a description of its values when it was lowered.

    Attributes:
        held: the values of its attributes, as text; compared to detect changes.
        in_python: whether the object itself is called in Python.
    """

    transform: object
    held: str
    in_python: bool


@dataclass(frozen=True)
class ImageRoute(NativeRoute):
    """Route on which headrace makes one image a sample.

    Attributes:
        recipe: the steps applied to each sample.
        lowered: the transforms that the recipe was lowered from.
        default_dtype: torch's default dtype at lowering, which is ToTensor's output dtype.
    """

    source: BlobDataset
    recipe: Recipe
    lowered: tuple[Lowered, ...]
    default_dtype: torch.dtype

    @classmethod
    def of(cls, source: BlobDataset, dtype: torch.dtype | None, *, may_vary: bool) -> Self:
        """Returns the route of a source.

        Args:
            dtype: the loader's argument.
            may_vary: whether images may have different sizes.

        Raises:
            NotNative, LoweringError: its transforms do not run natively.
        """
        each = cls.of_each(source, dtype, may_vary=may_vary)
        if not cls.are_alike(each):
            raise DifferentResults(
                "the datasets of the ConcatDataset have transforms with different results; give them the same "
                "transform and mode"
            )
        return cls.of_alike(each)

    @classmethod
    def of_each(cls, source: BlobDataset, dtype: torch.dtype | None, *, may_vary: bool) -> list[Self]:
        """Returns a route of the source for each of its variants, as if it were the only one; see `of`."""
        made: dict[tuple[object, ...], Self] = {}
        found = []
        for one in source.variants:
            key = id(one.transform), *one[1:]
            if key not in made:
                recipe = _lower_variant(one, dtype, may_vary=may_vary)
                made[key] = cls(source, recipe, _collect_lowered((one,), recipe), torch.get_default_dtype())
            found.append(made[key])
        if found[0].recipe.variants and isinstance(source, StreamSource):
            raise NotNative("the transforms depend on the size of each image, which a stream does not know ahead")
        return found

    @staticmethod
    def are_alike(each: Sequence[ImageRoute]) -> bool:
        """Whether the routes of all variants have one recipe."""
        first = each[0].recipe
        return all(one.recipe == first and one.recipe.maps_bytes_as(first) for one in each)

    @classmethod
    def of_alike(cls, each: Sequence[Self]) -> Self:
        """Returns the route of a source whose variants have one recipe."""
        first = each[0]
        return replace(first, lowered=_collect_lowered(first.source.variants, first.recipe))

    def is_still_lowered(self, variant: Variant, *, kept: bool) -> bool:
        """Whether a variant's transform is what the recipe was lowered from; `kept`: see `_are_lowered_alike`."""
        same_dtype = self.default_dtype == torch.get_default_dtype()
        return same_dtype and _are_lowered_alike(_collect_lowered((variant,), self.recipe), self.lowered, kept=kept)

    def check(self, own: OwnSettings) -> None:
        own.destination.require_decoder()
        own.refuse_of_videos()
        own.refuse_replacing(varies=bool(self.recipe.variants), streams=self.streams)

    @property
    def streams(self) -> bool:
        return isinstance(self.source, StreamSource)

    @property
    def product(self) -> Recipe:
        return self.recipe

    @property
    def recipes(self) -> Recipe:
        return self.recipe

    @property
    def kinds(self) -> object:
        return self.recipe.kinds

    @property
    def draws(self) -> tuple[AnyColumn, ...]:
        return self.recipe.columns

    @property
    def image_parts(self) -> Sequence[tuple[Recipe, BlobDataset]]:
        return [(self.recipe, self.source)]

    def renew(self, settings: Settings) -> ImageRoute:
        source = self.source if self.source.is_current() else source_of(settings.dataset, self.source)
        return self.renewed_for(source, settings, may_vary=not Batches.now(settings).stack(settings.collate_fn))

    def renewed_for(self, source: BlobDataset, settings: Settings, *, may_vary: bool) -> ImageRoute:
        """Returns the route of `source` in the next epoch: this one, unless the source or its transforms have
        changed."""
        same_dtype = self.default_dtype == torch.get_default_dtype()
        now = _collect_lowered(source.variants, self.recipe)
        # Persistent workers keep their copies of the objects that are called in Python.
        unchanged = source is self.source and same_dtype and (may_vary or not self.recipe.varies)
        if unchanged and _are_lowered_alike(now, self.lowered, kept=settings.persistent_workers):
            return self
        made = type(self).of(source, settings.dtype, may_vary=may_vary)
        if made.recipe == self.recipe and made.recipe.maps_bytes_as(self.recipe):
            made = replace(made, recipe=self.recipe)  # keeps the engine: it compares recipes by identity
        return made

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> Engine:
        recipe, layout = self.recipe, settings.layout
        destination, threads = settings.destination, settings.num_workers
        no_helpers = self.why_no_helpers(settings) if settings.helpers else ""
        if no_helpers:
            messages.warn(f"helpers have no effect: {no_helpers}", PerformanceWarning)
        if recipe.varies:
            stacked = settings.batched and collate_call.is_default(settings.collate_fn, batched=True)
            return RaggedEngine(recipe, layout, destination, stacked=stacked, threads=threads, pin=pin)
        if not recipe.variants:
            make = make_views_engine if recipe.views else make_engine
            made = make(recipe, layout, destination, threads=threads, slots_kept=slots_kept, pin=pin)
            if settings.helpers and not no_helpers:
                assert isinstance(made, ImageEngine)
                addresses, asked = addresses_of(settings.helpers), RowRequests(made, self.source)
                add_helpers(made, addresses, threads, asked, settings.timeout)
            return made
        settings.refuse_replacing(varies=True)
        return BucketedEngine(
            recipe, layout, destination, self._choose_output_sizes(settings), threads=threads, pin=pin
        )

    def why_no_helpers(self, settings: Settings) -> str:
        """Returns why no other machine makes samples; "": the loader's `helpers` do."""
        reasons = {
            "batches are made on a device": settings.destination.way != "memory",
            "num_workers=0 makes each batch in the caller's thread": settings.num_workers == 0,
            "its samples are pixels in memory": not self.source.encoded,
            "samples of a stream are read once": self.streams,
        }
        for why, holds in reasons.items():
            if holds:
                return why
        return self._why_not_sent

    @functools.cached_property
    def _why_not_sent(self) -> str:
        try:
            write_recipe(self.recipe)
        except NotText as error:
            return str(error)
        return ""

    def _choose_output_sizes(self, settings: Settings) -> Any:
        """Returns the output size of each sample; found out once, as it may read the files' headers."""
        identity, known = self.source.storage_identity, vars(self).get("_sizes")
        if known is None or known[0] != identity:
            sizes = sizes_known_to(settings.sampler, settings.batch_sampler, self.source)
            known = vars(self)["_sizes"] = identity, nearest_of(self.recipe.sizes, sizes)
        return known[1]


def source_of(dataset: object, before: BlobDataset | None = None) -> BlobDataset:
    """Returns what locates the samples of a dataset of images.

    Args:
        before: the source of the epoch before.
    """
    stream = stream_source(dataset)
    return as_source(dataset, before) if stream is None else stream


def _lower_variant(variant: Variant, dtype: torch.dtype | None, *, may_vary: bool) -> Recipe:
    if variant.clips is not None:  # of frames as byte tensors, before any transform
        tensors = Compose([PILToTensor()] if variant.transform is None else [PILToTensor(), variant.transform])
        of_frame = _lower_variant(variant._replace(transform=tensors, clips=None), dtype, may_vary=may_vary)
        in_python = frozenset(number - 1 for number in of_frame.in_python)
        return replace(of_frame, names=of_frame.names[1:], in_python=in_python)
    recipe = lower(
        variant.transform,
        dtype=dtype,
        channels=variant.channels,
        size=variant.size,
        mode=variant.mode,
        may_vary=may_vary,
    )
    return recipe.with_upright_images() if variant.upright else recipe


def _collect_lowered(variants: tuple[Variant, ...], recipe: Recipe) -> tuple[Lowered, ...]:
    different = {id(one.transform): one.transform for one in variants}
    found = []
    for transform in different.values():
        for number, leaf in enumerate(leaf_transforms(transform)):
            in_python = number in recipe.in_python and not recipe.variants
            called = called_after_crops(leaf), wrapped_compose(leaf)
            held = attributes(leaf) + attributes(called) + (Reach(leaf).values if in_python else "")
            found.append(Lowered(leaf, held, in_python))
    return tuple(found)


def _are_lowered_alike(now: tuple[Lowered, ...], then: tuple[Lowered, ...], *, kept: bool) -> bool:
    """Returns whether both hold the same transforms with the same attributes; `kept`: attributes of objects that are
    called in Python are not compared."""
    return len(now) == len(then) and all(
        a.transform is b.transform and (a.held == b.held or (kept and a.in_python))
        for a, b in zip(now, then, strict=True)
    )
