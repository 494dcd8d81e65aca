"""Decides whether headrace's threads or torch's DataLoader deliver a loader's batches, and why."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch

from headrace._base.exceptions import words_of
from headrace._base.originals.relied_functions import Relied, Replaced, relying
from headrace._loading.collate import collate_call, collate_registry
from headrace._loading.epoch import checkpoint
from headrace._loading.epoch.epochs import Epochs
from headrace._loading.mixup import recognition
from headrace._loading.native.arguments import check_replaceable
from headrace._loading.native.columns_route import Gathered
from headrace._loading.native.fields_route import Stacked, stacked
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.native.worker_init import only_seeds
from headrace._lowering import LoweringError, lower
from headrace._lowering.multi_output.crops import called_after_crops
from headrace._lowering.python_steps.bytecode_analysis import Reach
from headrace._lowering.python_steps.step_placement import Stepping
from headrace._lowering.transform_library import attributes, leaves
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.columns.columns_source import ColumnSource, as_columns
from headrace.datasets.fields.fields_source import StackedSource, as_stacked
from headrace.datasets.sources import BlobDataset, NotNative, Variant, as_source
from headrace.datasets.sources.override_checks import Overridden
from headrace.datasets.tar_stream.loader_hooks import stream_source
from headrace.datasets.tar_stream.stream_source import StreamSource


@dataclass(frozen=True)
class Lowered:
    """A transform, and a description of its values when it was lowered.

    Attributes:
        held: the values of its attributes, as text; compared to detect changes.
        in_python: whether the object itself is called in Python.
    """

    transform: Any
    held: str
    in_python: bool


@dataclass(frozen=True)
class Native:
    """Route on which headrace delivers.

    Attributes:
        source: locates the samples.
        recipe: the steps applied to each sample.
        lowered: the transforms that the recipe was lowered from.
        default_dtype: torch's default dtype at lowering, which is ToTensor's output dtype.
        relied: the libraries' functions that it stands for; None for a field of several.
    """

    source: BlobDataset
    recipe: Recipe
    lowered: tuple[Lowered, ...]
    default_dtype: torch.dtype
    relied: Relied | None = field(default=None, compare=False)

    def check(self, own: OwnSettings) -> None:
        """Raises ValueError if a setting does not fit the recipe."""
        check_replaceable(self.recipe, own.on_error)
        if own.on_error == "replace" and isinstance(self.source, StreamSource):
            raise ValueError(
                'on_error="replace" takes the next sample of the dataset, which a stream has not read yet; use "skip"'
            )

    @property
    def product(self) -> Recipe:
        """What an engine has to fit to make the batches."""
        return self.recipe

    @property
    def kinds(self) -> Any:
        """The classes of a sample's tensors."""
        return self.recipe.kinds

    @property
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample."""
        return self.recipe.columns

    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the source; cached because it takes milliseconds and a state may be saved with each batch."""
        return self.source.fingerprint()


@dataclass(frozen=True)
class Fallback:
    """Route on which torch's DataLoader delivers, with the same arguments.

    Attributes:
        reason: why, and what would make the loader native; one sentence per reason.
        replaced: whether the reason is that a function of a library has been replaced.
        passing: whether the reason may pass before the next epoch without a change of the loader.
    """

    reason: str
    replaced: bool = False
    passing: bool = False

    @classmethod
    def after(cls, error: Exception) -> Fallback:
        """Returns the route after a refusal of the native one."""
        replaced = isinstance(error, Replaced)
        return cls(str(error), replaced, replaced or isinstance(error, Overridden))

    def refuse(self, what: str) -> NoReturn:
        """Raises RuntimeError: torch's DataLoader has no `what`."""
        raise RuntimeError(f"{what} needs headrace's native path, but torch's DataLoader serves here: {self.reason}")


AnySource = BlobDataset | ColumnSource | StackedSource
Threaded = Native | Gathered | Stacked  # routes on which headrace delivers
Route = Threaded | Fallback


class Batches(enum.Enum):
    """How many samples a batch has."""

    NONE = "none"  # single samples
    ONE = "one"
    MANY = "many"

    @classmethod
    def of(cls, batch_size: int | None, batch_sampler: object) -> Batches:
        """Returns how samples are grouped by these arguments of a loader."""
        if batch_sampler is not None:
            return cls.MANY
        return cls.NONE if batch_size is None else cls.ONE if batch_size == 1 else cls.MANY

    @classmethod
    def now(cls, settings: Settings) -> Batches:
        """Returns how a loader groups samples: its batch sampler is always set if it has batches."""
        return cls.of(settings.batch_size, None if settings.batch_size == 1 else settings.batch_sampler)

    def stack(self, collate_fn: Callable[..., Any] | None) -> bool:
        """Returns whether images of a batch are stacked, and so need one size."""
        return self is Batches.MANY and collate_call.is_default(collate_fn, batched=True)


def decide(
    dataset: object,
    batches: Batches,
    collate_fn: Callable[..., Any] | None,
    worker_init_fn: Callable[[int], None] | None,
    num_workers: object,
    own: OwnSettings,
) -> Route:
    """Returns the route of a loader over `dataset`.

    Args:
        batches: how samples are grouped; by default torch collates batches, and converts single samples.
        num_workers: the loader's argument.
    """
    if reasons := _needs_python(batches, collate_fn, worker_init_fn, dataset):
        return Fallback("; ".join(reasons))
    try:
        route = _threaded(dataset, own.dtype, batches, collate_fn)
    except (NotNative, LoweringError, Replaced) as error:
        return Fallback.after(error)
    return _unless_torchs(route, dataset, num_workers, own, collate_fn, batches)


def _unless_torchs(
    route: Threaded,
    dataset: object,
    num_workers: object,
    own: OwnSettings,
    collate_fn: Callable[..., Any] | None,
    batches: Batches,
) -> Route:
    """Returns `route`, or torch's if its loader is to call the Python code of the transforms, labels and collate_fn."""
    stream = isinstance(route, Native) and isinstance(route.source, StreamSource)
    found = stepping(route, collate_fn, batched=batches is not Batches.NONE)
    why = found.refusal(dataset, num_workers, own.seed, bound=stream or bool(own.native_arguments))
    return route if why is None else Fallback(why)


def stepping(route: Threaded, collate_fn: Callable[..., Any] | None, *, batched: bool) -> Stepping:
    """Returns what the Python code of a route does beyond its samples; found out once for a route and collate_fn."""
    if collate_call.is_default(collate_fn, batched) or (collate_fn and recognition.of_samples(collate_fn) is not None):
        collate_fn = None
    known: dict[Any, Stepping] = vars(route).setdefault("_stepping", {})
    if id(collate_fn) not in known:
        known.clear()
        known[id(collate_fn)] = Stepping.of(_parts(route), collate_fn)
        vars(route)["_collate_fn"] = collate_fn  # its id stays its own
    return known[id(collate_fn)]


def _parts(route: Threaded) -> list[tuple[Recipe, Any]]:
    """Returns the recipes of a route's images, with their sources."""
    if isinstance(route, Gathered):
        return []
    images = list(route.images.values()) if isinstance(route, Stacked) else [route]
    return [(one.recipe, one.source) for one in images]


def reasons(settings: Settings) -> list[str]:
    """Returns all reasons why torch delivers: those of the arguments, then that of the dataset or its transform."""
    batches = Batches.now(settings)
    found = _needs_python(batches, settings.collate_fn, settings.worker_init_fn, settings.dataset)
    try:
        route = _threaded(settings.dataset, settings.dtype, batches, settings.collate_fn)
        last = _unless_torchs(route, settings.dataset, settings.fixed_workers, settings, settings.collate_fn, batches)
        found += [last.reason] if isinstance(last, Fallback) else []
    except Exception as error:  # torch delivers, whatever the error is
        found.append(words_of(error))
    return found


def renewed(route: Threaded, settings: Settings) -> Route:
    """Returns the route of a loader's next epoch: `route`, unless the dataset's content, its transform or the
    transform's attributes, a function of a library that they call, or the loader's ``collate_fn`` or ``worker_init_fn``
    has changed."""
    batches = Batches.now(settings)
    if reasons := _needs_python(batches, settings.collate_fn, settings.worker_init_fn, settings.dataset):
        return Fallback("; ".join(reasons))
    try:
        made = _renewed_threaded(relying(route, route.relied), settings, batches)
        if made.relied is None:
            sources = [source for _, source in _parts(made)]
            made = relying(made, _relied(settings.dataset, sources, batches, settings.collate_fn))
        return _unless_torchs(made, settings.dataset, settings.fixed_workers, settings, settings.collate_fn, batches)
    except (NotNative, LoweringError, Replaced) as error:
        return Fallback.after(error)


def _renewed_threaded(route: Threaded, settings: Settings, batches: Batches) -> Threaded:
    if isinstance(route, Gathered):
        return route.renewed(settings.dataset)
    if isinstance(route, Stacked):
        return route.renewed(
            settings.dataset,
            lambda part, source: _renewed(part, source, settings, may_vary=False),
            lambda source: _native(source, settings.dtype, may_vary=False),
        )
    source = route.source if route.source.is_current() else _source_of(settings.dataset, route.source)
    return _renewed(route, source, settings, may_vary=not batches.stack(settings.collate_fn))


def _renewed(route: Native, source: BlobDataset, settings: Settings, *, may_vary: bool) -> Native:
    """Returns the route of `source` in the next epoch: `route`, unless the source or its transforms have changed."""
    same_dtype = route.default_dtype == torch.get_default_dtype()
    now = _lowered(source.variants, route.recipe)
    # Persistent workers keep their copies of the objects that are called in Python.
    unchanged = source is route.source and same_dtype and (may_vary or not route.recipe.varies)
    if unchanged and _same(now, route.lowered, kept=settings.persistent_workers):
        return route
    made = _native(source, settings.dtype, may_vary=may_vary)
    if made.recipe == route.recipe and made.recipe.maps_bytes_as(route.recipe):
        made = replace(made, recipe=route.recipe)  # keeps the engine: it compares recipes by identity
    return made


def _needs_python(
    batches: Batches,
    collate_fn: Callable[..., Any] | None,
    worker_init_fn: Callable[[int], None] | None,
    dataset: object,
) -> list[str]:
    """Returns the reasons why torch has to deliver that do not depend on the dataset."""
    reasons = []
    if collate_fn is not None and not collate_call.is_default(collate_fn, batches is not Batches.NONE):
        refused = collate_call.refusal(collate_fn)
        if refused is not None:
            reasons.append(refused)
    if (
        batches is not Batches.NONE
        and collate_call.is_default(collate_fn, batched=True)
        and not collate_registry.is_usual()
    ):
        reasons.append(
            "an entry of torch's default_collate_fn_map for tensors, numbers, tuples, lists or dicts was changed, "
            "which native threads do not call; give the function as collate_fn"
        )
    if worker_init_fn is not None and not only_seeds(worker_init_fn, dataset):
        reasons.append(
            "worker_init_fn does more than to seed generators, and runs in worker processes, which native threads are "
            "not; leave it out"
        )
    return reasons


def _threaded(
    dataset: object, dtype: torch.dtype | None, batches: Batches, collate_fn: Callable[..., Any] | None
) -> Threaded:
    """Returns the route of a dataset on which headrace delivers.

    Raises:
        NotNative, LoweringError: the dataset, or a transform, does not run natively.
    """
    fields = as_stacked(dataset)
    columns = None if fields is not None else as_columns(dataset)
    source = None if fields is not None or columns is not None else _source_of(dataset)
    # Before lowering, which tries the functions, and keeps what it finds.
    images = [source] if fields is None else [one.image for one in fields.fields]
    relied = _relied(dataset, [one for one in images if one is not None], batches, collate_fn)
    relied.check()
    if fields is not None:
        return relying(stacked(fields, lambda one: _native(one, dtype, may_vary=False)), relied)
    if columns is not None:
        return relying(Gathered(columns), relied)
    assert source is not None
    # Images may have different sizes where nothing stacks them.
    return relying(_native(source, dtype, may_vary=not batches.stack(collate_fn)), relied)


def _relied(
    dataset: object, sources: Sequence[BlobDataset], batches: Batches, collate_fn: Callable[..., Any] | None
) -> Relied:
    """Returns the libraries' functions that native batches stand for; `sources`: of the dataset's images."""
    default = collate_call.is_default(collate_fn, batches is not Batches.NONE)
    named = [one for source in sources for one in source.named_sources()]
    return Relied([dataset, *named], images=bool(sources), collates=default, collate_fn=collate_fn if default else None)


def _source_of(dataset: object, before: BlobDataset | None = None) -> BlobDataset:
    stream = stream_source(dataset)
    return as_source(dataset, before) if stream is None else stream


def _native(source: BlobDataset, dtype: torch.dtype | None, *, may_vary: bool) -> Native:
    variants = source.variants
    different = {(id(one.transform), *one[1:]): one for one in variants}
    first, *others = (_recipe(one, dtype, may_vary=may_vary) for one in different.values())
    for other in others:
        if other != first or not other.maps_bytes_as(first):
            raise NotNative(
                "the datasets of the ConcatDataset have transforms with different results; give them the same "
                "transform and mode"
            )
    if first.variants and isinstance(source, StreamSource):
        raise NotNative("the transforms depend on the size of each image, which a stream does not know ahead")
    return Native(source, first, _lowered(variants, first), torch.get_default_dtype())


def _recipe(variant: Variant, dtype: torch.dtype | None, *, may_vary: bool) -> Recipe:
    recipe = lower(
        variant.transform,
        dtype=dtype,
        channels=variant.channels,
        size=variant.size,
        mode=variant.mode,
        may_vary=may_vary,
    )
    return recipe.of_upright_images() if variant.upright else recipe


def _lowered(variants: tuple[Variant, ...], recipe: Recipe) -> tuple[Lowered, ...]:
    different = {id(one.transform): one.transform for one in variants}
    found = []
    for transform in different.values():
        for number, leaf in enumerate(leaves(transform)):
            in_python = number in recipe.in_python and not recipe.variants
            held = attributes(leaf) + attributes(called_after_crops(leaf)) + (Reach(leaf).values if in_python else "")
            found.append(Lowered(leaf, held, in_python))
    return tuple(found)


def _same(now: tuple[Lowered, ...], then: tuple[Lowered, ...], *, kept: bool) -> bool:
    """Returns whether both hold the same transforms with the same attributes; `kept`: attributes of objects that are
    called in Python are not compared."""
    return len(now) == len(then) and all(
        a.transform is b.transform and (a.held == b.held or (kept and a.in_python))
        for a, b in zip(now, then, strict=True)
    )


def save(route: Threaded, seed: int | None, epochs: Epochs) -> dict[str, Any]:
    """Returns the state of a loader with this route."""
    return checkpoint.save(_identity(route, seed, epochs), epochs.position())


def resume(route: Threaded, seed: int | None, epochs: Epochs, saved: dict[str, Any]) -> None:
    """Makes the next epoch of a loader with this route go on from a state."""
    epochs.resume(checkpoint.load(saved, _identity(route, seed, epochs)))


def _identity(route: Threaded, seed: int | None, epochs: Epochs) -> checkpoint.Identity:
    """Returns what a state of a loader with this route belongs to."""
    recipe = None if isinstance(route, Gathered) else route.recipe
    return checkpoint.Identity.of(seed, len(route.source), route.fingerprint, epochs.order(), recipe, epochs.generators)
