"""Decides whether headrace's threads or torch's DataLoader deliver a loader's batches, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace._base.originals.relied_functions import Relied, Replaced, rely_on_functions
from headrace._base.safe_exceptions import message_of
from headrace._base.types import Function
from headrace._loading.collate import collate_call, collate_registry
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.native.worker_init import only_seeds
from headrace._loading.routes.columns_route import ColumnsRoute
from headrace._loading.routes.fields_route import FieldsRoute
from headrace._loading.routes.image_route import DifferentResults, source_of
from headrace._loading.routes.route import Batches, Loader, NativeRoute, Route
from headrace._loading.routes.source_route import is_audio, route_of_dataset
from headrace._loading.routes.torch_route import TorchRoute
from headrace._lowering import LoweringError
from headrace.datasets.columns.columns_source import as_columns
from headrace.datasets.fields.fields_source import as_stacked
from headrace.datasets.sources import BlobDataset, NotNative


@dataclass(frozen=True)
class Request:
    """What the route of a loader follows from.

    Attributes:
        dataset, collate_fn, worker_init_fn, num_workers: the loader's arguments.
        batches: how samples are grouped; by default torch collates batches, and converts single samples.
        own: headrace's own arguments.
    """

    dataset: object
    batches: Batches
    collate_fn: Function | None
    worker_init_fn: Callable[[int], None] | None
    num_workers: object
    own: OwnSettings

    @classmethod
    def now(cls, settings: Settings) -> Request:
        """Returns the request of a loader with the current values of its attributes."""
        batches, workers = Batches.now(settings), settings.fixed_workers
        return cls(settings.dataset, batches, settings.collate_fn, settings.worker_init_fn, workers, settings)

    @property
    def batched(self) -> bool:
        """Whether samples are grouped into batches."""
        return self.batches is not Batches.NONE


def decide_route(request: Request) -> NativeRoute | TorchRoute:
    """Returns the route of a loader."""
    if found := _reasons_of_arguments(request):
        return TorchRoute("; ".join(found))
    try:
        return _check_python_effects(_native_route(request), request)
    except (NotNative, LoweringError, Replaced) as error:
        return TorchRoute.after(error)


def reasons_for_torch(settings: Settings) -> list[str]:
    """Returns all reasons why torch delivers: those of the arguments, then that of the dataset or its transform."""
    request = Request.now(settings)
    found = _reasons_of_arguments(request)
    try:
        last = _check_python_effects(_native_route(request), request)
        found += [last.reason] if isinstance(last, TorchRoute) else []
    except Exception as error:  # torch delivers, whatever the error is
        found.append(message_of(error))
    return found


def renew_route(loader: Loader) -> Route:
    """Returns the route of the loader's next epoch: its route of now, unless the dataset's content, its transform or
    the transform's attributes, a function of a library that they call, or the loader's ``collate_fn`` or
    ``worker_init_fn`` has changed, or torch delivered for a reason that has passed.

    Raises:
        TypeError: an argument of headrace's own needs the native path, which the loader loses now.
        RuntimeError: so does a state that was loaded.
    """
    route = loader._route
    if isinstance(route, TorchRoute):
        return _return_to_native(loader, route)
    # torch's persistent workers keep the dataset, the functions and the collate_fn of their first epoch.
    kept = loader._runner.keeps_datasets
    assert isinstance(route, NativeRoute)
    now = route if kept else _renew_native_route(route, loader._settings())
    if isinstance(now, TorchRoute):
        now.check(loader._own)
        if loader._epochs.resumes:
            raise RuntimeError(
                "the state that was loaded is of headrace's native path, but torch's DataLoader would serve now: "
                f"{now.reason}"
            )
        loader._torch_epochs.continue_at(loader._epochs.upcoming)
    else:
        loader._epochs.follow(loader._find_ordering(), None if kept else now.samples)
    return now


def _renew_native_route(route: NativeRoute, settings: Settings) -> NativeRoute | TorchRoute:
    request = Request.now(settings)
    if found := _reasons_of_arguments(request):
        return TorchRoute("; ".join(found))
    try:
        try:
            made = rely_on_functions(route, route.relied).renew(settings)
        except DifferentResults:
            made = _native_route(request)
        if made.relied is None:
            made = rely_on_functions(made, _find_relied(request, [source for _, source in made.image_parts]))
        return _check_python_effects(made, request)
    except (NotNative, LoweringError, Replaced) as error:
        return TorchRoute.after(error)


def _return_to_native(loader: Loader, route: TorchRoute) -> Route:
    """Returns the native route if the reason why torch delivers has passed, else `route`.

    An epoch that torch has begun, or that a state was loaded for, goes on with torch. So do persistent workers, which
    hold the functions that were there when they were forked.
    """
    if not route.passing or loader._iterator is not None or loader._torch_epochs.goes_on(loader):
        return route
    settings = loader._settings()
    now = decide_route(Request.now(settings))
    if isinstance(now, TorchRoute):
        return now
    now.check(settings)
    if "_epochs" in vars(loader):
        loader._epochs.follow(loader._find_ordering(), now.samples)
    else:
        loader._epochs = now.new_epochs(loader, keeps_base_seed=settings.persistent_workers)
    loader._epochs.continue_at(loader._torch_epochs.upcoming(loader))
    return now


def _check_python_effects(route: NativeRoute, request: Request) -> NativeRoute | TorchRoute:
    """Returns `route`, or torch's if its loader is to call the Python code of the transforms, labels and collate_fn."""
    found, own = route.python_effects(request.collate_fn, batched=request.batched), request.own
    bound = route.streams or bool(own.native_arguments)
    why = found.refusal(request.dataset, request.num_workers, own.seed, bound=bound)
    return route if why is None else TorchRoute(why)


def _reasons_of_arguments(request: Request) -> list[str]:
    """Returns the reasons why torch has to deliver that do not depend on the dataset."""
    reasons, collate_fn = [], request.collate_fn
    if collate_fn is not None and not collate_call.is_default(collate_fn, request.batched):
        refused = collate_call.why_not_native(collate_fn)
        if refused is not None:
            reasons.append(refused)
    if request.batched and collate_call.is_default(collate_fn, batched=True) and not collate_registry.is_usual():
        reasons.append(
            "an entry of torch's default_collate_fn_map for tensors, numbers, tuples, lists or dicts was changed, "
            "which native threads do not call; give the function as collate_fn"
        )
    if request.worker_init_fn is not None and not only_seeds(request.worker_init_fn, request.dataset):
        reasons.append(
            "worker_init_fn does more than to seed generators, and runs in worker processes, which native threads are "
            "not; leave it out"
        )
    return reasons


def _native_route(request: Request) -> NativeRoute:
    """Returns the route of a dataset on which headrace delivers.

    Raises:
        NotNative, LoweringError: the dataset, or a transform, does not run natively.
    """
    dataset = request.dataset
    fields = as_stacked(dataset)
    columns = None if fields is not None else as_columns(dataset)
    source = None if fields is not None or columns is not None else source_of(dataset)
    # Before lowering, which tries the functions, and keeps what it finds.
    images = [source] if fields is None else [one.image for one in fields.fields]
    relied = _find_relied(request, [one for one in images if one is not None])
    relied.check()
    if fields is not None:
        return rely_on_functions(FieldsRoute.of(fields), relied)
    if columns is not None:
        return rely_on_functions(ColumnsRoute(columns), relied)
    assert source is not None
    # Images may have different sizes where nothing stacks them.
    may_vary = not request.batches.stack(request.collate_fn)
    return rely_on_functions(route_of_dataset(source, request.own, may_vary=may_vary), relied)


def _find_relied(request: Request, sources: Sequence[BlobDataset]) -> Relied:
    """Returns the libraries' functions that native batches stand for; `sources`: of the dataset's images."""
    default = collate_call.is_default(request.collate_fn, request.batched)
    collate_fn = request.collate_fn if default else None
    named = [one for source in sources for one in source.named_sources()]
    images = not all(map(is_audio, sources))
    return Relied([request.dataset, *named], images=images, collates=default, collate_fn=collate_fn)
