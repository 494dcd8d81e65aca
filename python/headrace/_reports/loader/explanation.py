"""Explains which parts of a loader run natively, which in Python, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import PIL
from torch.utils.data import IterableDataset, default_collate, default_convert

from headrace._base.messages import public_name_of, shorten_text
from headrace._base.native import core
from headrace._base.ranks import World
from headrace._engine.destination import Destination
from headrace._engine.device_engine import decoding_threads, destination_for
from headrace._helpers.argument import RayHelpers
from headrace._loading.autotune.tuner_summary import Tuned
from headrace._loading.collate import collate_call
from headrace._loading.epoch.sampler_setup import order_of
from headrace._loading.epoch.torch_loader import missing_hook
from headrace._loading.mixup import recognition
from headrace._loading.native.cpu_affinity import write_cores
from headrace._loading.native.settings import Settings
from headrace._loading.records.record_makers import Makers, find_makers
from headrace._loading.routes.image_route import ImageRoute
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe import Recipe
from headrace._recipe.steps.steps import OPENCV_FILTER, Step
from headrace._reports.loader.equal_views import equal_views, names_of, without_draws
from headrace._reports.loader.markup import table
from headrace._reports.loader.notebook_views import NotebookView
from headrace.datasets.sources import BlobDataset
from headrace.pillow.recording.image_counts import ImageCounts

_TABLE = "https://headrace.github.io/headrace/transforms/#every-transform"


@dataclass(frozen=True)
class Part:
    """One row of the table: a part of the loader, where it runs, and how."""

    part: str
    runs: str
    how: str


@dataclass(frozen=True, repr=False)
class Explanation(NotebookView):
    """See ``DataLoader.explain``; ``str()`` is a table."""

    lines: tuple[Part, ...]

    def __str__(self) -> str:
        part = max(len(line.part) for line in self.lines)
        runs = max(len(line.runs) for line in self.lines)
        return "\n".join(f"{line.part:<{part}}  {line.runs:<{runs}}  {line.how}" for line in self.lines)

    def _repr_html_(self) -> str:
        return table(("part", "runs", "how"), [(line.part, line.runs, line.how) for line in self.lines])


def explain(settings: Settings, route: ImageRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader whose batches native threads deliver; see ``DataLoader.explain``."""
    source, recipe = route.source, route.recipe
    ahead = not any(call.process_wide for call in recipe.calls)
    lines = [
        *explain_reading(settings, source, settings.dataset),
        *explain_steps(recipe, verbose),
        *explain_order(settings, route),
        *_explain_helpers(settings, route),
        *explain_targets(source),
        *explain_collation(settings, ahead=ahead),
        *explain_seeding(settings),
        *explain_ranks(settings),
    ]
    return Explanation((*lines, *explain_output(settings, recipe, verbose)))


def _explain_helpers(settings: Settings, route: ImageRoute) -> list[Part]:
    """Returns what other machines make; nothing without `helpers`."""
    return _explain_use_of_helpers(settings, route.why_no_helpers(settings) if settings.helpers else "")


def _explain_use_of_helpers(settings: Settings, why: str, *, of_records: bool = False) -> list[Part]:
    """`why`: they are not used; "" if they are."""
    if not settings.helpers:
        return []
    if why:
        return [Part("helpers", "unused", f"no sample is made on another machine: {why}")]
    given = settings.helpers
    where = "nodes of Ray's cluster" if isinstance(given, RayHelpers) else ", ".join(map(str, given))
    alone = "; several views of a file are made here" if of_records else ""
    return [Part("helpers", "native", f"{where} make what the threads here would make last{alone}")]


def explain_reading(settings: Settings, source: BlobDataset, dataset: object) -> list[Part]:
    """Returns how the images of `dataset`, whose source is `source`, are read and decoded."""
    found = Part("dataset", "native", f"{source!r} of {public_name_of(type(dataset))}")
    threads = "the caller's thread (num_workers=0)"
    if settings.num_workers:
        threads = f"{decoding_threads(settings.destination, settings.num_workers)} threads"
    if not source.encoded:
        return [found, Part("read", "native", f"{threads}, pixels in memory: nothing to decode")]
    odd = "Python threads" if settings.num_workers else "the caller's thread"
    if source.mode == "P":
        not_native, decoder = "not plain PNG", "the palette indices of PNGs, by libdeflate and headrace's loops"
    else:
        not_native = "not plain JPEG or PNG" + (", or with an EXIF orientation" if source.upright else "")
        decoder = (
            f"headrace's loops and libjpeg-turbo {core.libjpeg_version()}, only the rows and columns of the crop; "
            "whole PNGs by libdeflate and headrace's loops"
        )
    return [
        found,
        Part("read, decode", "native", f"{threads}, {decoder}"),
        Part(not_native, "Python", f"decoded by Pillow {PIL.__version__} in {odd}, then the native steps"),
    ]


def explain_steps(recipe: Recipe, verbose: bool) -> list[Part]:
    """Returns what each transform was lowered to.

    Args:
        verbose: equal views are described each for itself, and with the numbers of their draws.
    """
    alone = any(call.process_wide for call in recipe.calls)
    where = "; in the caller's thread, because it may draw from generators of the process" if alone else ""
    lines, labels = [], _view_labels(recipe)
    for number, (name, how) in enumerate(recipe.names):
        python = number in recipe.in_python
        if not verbose and not python:
            if (label := _label_of(name, labels)) is None:
                continue
            name, how = label, without_draws(how)
        part, how = shorten_text(name, 60), how.removeprefix("native ")
        lines.append(Part(part, "Python", how + where) if python else Part(part, "native", how))
    if recipe.in_python:
        lines.append(Part("steps in Python", "see", f"{_TABLE} lists the transforms that have a native form"))
    return lines


def _view_labels(recipe: Recipe) -> dict[str, str]:
    """Returns how a line of a view begins in `Recipe.names` -> how to begin it; empty for the others of equal views."""
    names, found = names_of(recipe), {}
    for group in equal_views(recipe):
        for number in group.views:
            found[f"view {names[number]}: "] = f"{group.label}: " if number == group.views[0] else ""
    return found


def _label_of(name: str, labels: dict[str, str]) -> str | None:
    """Returns a line's name with the label of its views; None: an equal view has the line."""
    for begin, label in labels.items():
        if name.startswith(begin):
            return label + name.removeprefix(begin) if label else None
    return name


def explain_order(settings: Settings, route: ImageRoute) -> list[Part]:
    """Returns why the caller's thread makes each sample, in order, or that batches may overtake each other; nothing
    where threads share samples out and batches come in order."""
    why = route.python_effects(settings.collate_fn, batched=settings.batched).in_order
    if not why and settings.overtakes:
        how = "in_order=False: a batch that is complete is handed out before an earlier one that is not"
        return [Part("order", "native", how)]
    if not why or settings.num_workers == 0:
        return []
    return [Part("order", "Python", f"the caller's thread makes one sample after another, because {why}")]


def explain_targets(source: BlobDataset) -> list[Part]:
    """Returns where targets are made; nothing without targets."""
    if not source.has_targets:
        return []
    transform = source.target_transform
    return [
        Part("targets", "Python", "one array look-up per batch" if transform is None else f"{transform!r} per sample")
    ]


def explain_collation(settings: Settings, *, ahead: bool = True) -> list[Part]:
    """Returns what becomes of a collate_fn of the user's; nothing without one.

    Args:
        ahead: whether threads may call it before the batch is due.
    """
    if settings.collate_fn is None or collate_call.is_default(settings.collate_fn, settings.batched):
        return []
    name = getattr(settings.collate_fn, "__qualname__", repr(settings.collate_fn))
    ahead = ahead and not collate_call.may_change_itself(settings.collate_fn)
    threads = ahead and settings.num_workers > 0 and settings.destination.way == "memory"
    where = "Python threads" if threads else "the caller's thread"
    mixes = recognition.mixing_of_samples(settings.collate_fn) is not None
    what = "mixes the finished batch in place, natively" if mixes else "on views of the finished batch"
    return [Part("collate_fn", "Python", f"{name} in {where}, {what}")]


def explain_seeding(settings: Settings) -> list[Part]:
    """Returns what becomes of a worker_init_fn that only seeds; nothing without one."""
    if settings.worker_init_fn is None:
        return []
    how = "not called: it only seeds generators of worker processes; random numbers follow from the loader's seed"
    return [Part("worker_init_fn", "native", how)]


def explain_output(settings: Settings, recipe: Recipe, verbose: bool) -> list[Part]:
    """Returns how images are resized and what a batch of them is."""
    destination = destination_for(recipe, settings.destination)
    fused = destination.way == "fused"
    kernels = "the device's kernel" if fused else f"{core.instruction_set()} kernels"
    passes = f"as Pillow {PIL.__version__} does it: {pillow_rule.describe_order(pillow_rule.pass_order())}"
    if _has_filter(recipe.steps, OPENCV_FILTER):
        passes += f"; albumentations' as in OpenCV {sys.modules['cv2'].__version__}"
    lines = [Part("resize", "native", f"{kernels}, {passes}")]
    if recipe.views:
        once = "one decode for all" if destination.way == "memory" else "one decode each"
        lines.append(Part("views", "native", f"{len(recipe.views)}, {once}"))
    for name, one in _list_outputs(recipe, verbose):
        shapes = " or ".join(str(variant.shape) for variant in one.variants or (one,))
        if one.varies:
            shapes = f"({one.channels}, H, W) with each image's own size"
        lines.append(Part(name, "native", f"{one.dtype}, {shapes}, {settings.memory_format}"))
    if destination.way != "memory":
        lines.append(Part("device", "native" if fused else "torch", f"{destination.device}: {destination.why}"))
    return lines


def _has_filter(steps: Iterable[Step], filter: str) -> bool:
    """Whether a step resizes with a filter."""
    return any(
        getattr(step, "filter", None) == filter or _has_filter(getattr(step, "steps", ()), filter) for step in steps
    )


def _list_outputs(recipe: Recipe, verbose: bool) -> list[tuple[str, Recipe]]:
    """Returns the names of the outputs and a recipe for each; equal views are one output, unless `verbose`."""
    if not recipe.views:
        return [("output", recipe)]
    if verbose:
        return [(f"output, view {name}", one) for name, one in zip(names_of(recipe), recipe.views, strict=True)]
    found = []
    for group in equal_views(recipe):
        shared = " (one transform)" if len(group.views) > 1 else ""
        found.append((f"output, {group.label}{shared}", recipe.views[group.views[0]]))
    return found


def explain_torch(settings: Settings, reasons: list[str], deferred: ImageCounts | None) -> Explanation:
    """Returns the table of a loader whose batches torch delivers.

    Args:
        deferred: the images of the newest epoch so far; None if images are not opened deferred.
    """
    workers = (
        f"{settings.num_workers} worker processes" if settings.num_workers else "the caller's thread (num_workers=0)"
    )
    return Explanation(
        (
            *(Part("all", "torch", f"handed to torch's DataLoader: {reason}") for reason in reasons),
            Part("dataset", "Python", f"{public_name_of(type(settings.dataset))} in {workers}"),
            _explain_deferred_images(deferred),
            *_explain_device(settings, deferred),
            Part("collate_fn", "Python", getattr(settings.collate_fn, "__qualname__", repr(settings.collate_fn))),
            Part("randomness", "torch", _explain_torch_seeding(settings)),
            *explain_ranks(settings),
        )
    )


def _explain_torch_seeding(settings: Settings) -> str:
    if settings.seed is None:
        return "as in torch"
    if isinstance(settings.dataset, IterableDataset) or missing_hook() is not None:
        return f"order and worker seeds follow from seed={settings.seed}"
    init = "; what worker_init_fn seeds reaches no sample" if settings.worker_init_fn is not None else ""
    what = "random, numpy.random and torch are seeded before each sample"
    return f"order and samples follow from seed={settings.seed}: {what}{init}"


def _explain_deferred_images(deferred: ImageCounts | None) -> Part:
    if deferred is None:
        return Part("images", "Python", "opened by Pillow as usual")
    so_far = f"so far {deferred}" if deferred.any else "none was opened so far"
    if deferred.small_tensors:
        so_far += "; small tensors come by memory that stays mapped"
    how = "those of PIL.Image.open are decoded, cropped and resized natively, when pixels are needed"
    return Part("images", "native", f"{how}; {so_far}")


def _explain_device(settings: Settings, deferred: ImageCounts | None) -> list[Part]:
    """Returns where the images of each field of a batch are made, and what becomes of the rest; nothing where images
    are not deferred."""
    if deferred is None:
        return []
    destination = settings.destination
    collates = settings.collate_fn not in (None, default_collate, default_convert)
    makers = find_makers(
        settings.num_workers,
        destination,
        is_given=settings.tuner is None,
        collates=collates,
        helped=bool(settings.helpers),
        tolerates=settings.on_error != "raise",
    )
    lines = [_explain_field(name, where, makers, destination) for name, where in deferred.fields.items()]
    if destination.way != "memory":
        how = "images that nothing in a worker has looked at are made there from records; all else is copied there"
        if makers.why:
            how = f"all is made where the dataset runs, because {makers.why}, and copied there"
        elif not lines and collates:
            how = "all is made where the dataset runs, because collate_fn is the program's, and copied there"
        lines.append(Part("device", str(destination.device), f"{how}; {destination.why}" if destination.why else how))
    elif makers.why and settings.num_workers:
        lines.append(Part("tensors", "native", f"deferred ones are made in the workers, because {makers.why}"))
    unused = makers.why_no_helpers
    if deferred.fields and "recorded" not in deferred.fields.values():
        unused = unused or "none of them is an image that is made from a record"
    return [*lines, *_explain_use_of_helpers(settings, unused, of_records=True)]


def _explain_field(name: str, where: str, makers: Makers, destination: Destination) -> Part:
    """`where`: "recorded", or what makes it, and why."""
    if where != "recorded":
        return Part(f"batch{name}", "native", where)
    named = ["native threads of this process"]  # of workers that persist, and began when there were more cores
    if makers.threads is not None:
        threads = decoding_threads(destination, makers.threads)
        named = [f"{threads} native thread{'s'[: threads != 1]} of this process" if threads else "the caller's thread"]
    if destination.way != "memory":
        named.append(f"the device ({destination.device})")
    return Part(f"batch{name}", "native", f"recorded: made by {' and '.join(named)}")


def explain_choices(settings: Settings, tuned: Tuned | None) -> list[Part]:
    """Returns the numbers that the loader chose itself, the cores of its threads and the limit of its prefetch; nothing
    without."""
    lines = [] if tuned is None else [Part("num_workers", "auto", str(tuned).partition(": ")[2])]
    if settings.cores:
        lines.append(Part("cpu_affinity", "native", f"threads run on cores {write_cores(settings.cores)}"))
    if settings.prefetch_bytes is not None:
        limit = f"at most {settings.prefetch_bytes:,} bytes and {settings.depth} batches beyond the one in use"
        lines.append(Part("prefetch_bytes", "native", limit))
    return lines


def explain_ranks(settings: Settings) -> list[Part]:
    """Returns how a distributed job shares the samples; nothing without ranks."""
    world = settings.world
    if world.size == 1:
        whole = settings.reads_whole and World.found_out().size > 1
        how = "each reads all samples, as with torch's DataLoader; distributed=True shards them"
        return [Part("ranks", "given", how)] if whole else []
    found = f", as {world.found} says" if world.found else ""
    share = order_of(settings.sampler, settings.batch_sampler, 0, settings.seed).cut.share
    rest = "dropped" if share.drop_last else "padded with the first ones"
    what = "batch" if settings.batch_size is None and settings.batched else "sample"
    how = f"rank {world.rank} of {world.size}{found}: one {what} in {world.size} of the order; an incomplete round "
    return [Part("ranks", "native", f"{how}is {rest}")]
