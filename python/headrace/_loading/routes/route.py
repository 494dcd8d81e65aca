"""The interface of a loader's routes: what the loader asks of the way that its batches take."""

from __future__ import annotations

import enum
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from headrace._base.errors import SampleError
from headrace._base.originals.relied_functions import Relied
from headrace._base.types import Function, State
from headrace._engine.engine import Engine
from headrace._loading.collate import collate_call
from headrace._loading.epoch import checkpoint
from headrace._loading.epoch.epochs import Epochs
from headrace._loading.epoch.torch_loader import Ordering, TorchLoader
from headrace._loading.mixup import recognition
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._lowering.python_steps.step_placement import PythonEffects
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import Recipe, Recipes
from headrace.datasets.columns.columns_source import ColumnSource
from headrace.datasets.fields.fields_source import StackedSource
from headrace.datasets.sources import BlobDataset

if TYPE_CHECKING:
    from headrace._loading.autotune.tuner import Tuner
    from headrace._loading.fallback.torch_epochs import TorchEpochs

AnySource = BlobDataset | ColumnSource | StackedSource


class Loader(TorchLoader, Protocol):
    """The part of the loader that its routes and reports need."""

    _own: OwnSettings
    _route: Route
    _runner: Any  # Runner
    _epochs: Epochs

    @property
    def seed(self) -> int | None: ...

    @property
    def _active_tuner(self) -> Tuner | None: ...

    @property
    def _torch_epochs(self) -> TorchEpochs: ...

    @property
    def route(self) -> str: ...

    def _settings(self) -> Settings: ...

    def _renewed_route(self) -> Route: ...

    def _native_route(self, what: str) -> NativeRoute: ...

    def _find_ordering(self) -> Ordering: ...

    def _stats(self, judged: bool) -> Any: ...

    def __iter__(self) -> Iterator[object]: ...


class Route(ABC):
    """How a loader's batches are delivered. A loader's epochs count on where its route changes.

    Attributes:
        native: whether headrace's threads deliver.
    """

    native: ClassVar[bool]

    @abstractmethod
    def check(self, own: OwnSettings) -> None:
        """Raises TypeError or ValueError if one of headrace's own arguments has no meaning on this route."""

    @abstractmethod
    def needed_for(self, what: str) -> NativeRoute:
        """Returns this route. Raises RuntimeError if torch delivers, which has no `what`."""

    @abstractmethod
    def begin(self, loader: Loader, torchs: Callable[[], Iterator[object]], published: bool) -> Iterator[object]:
        """Returns the iterator of the loader's next epoch.

        Args:
            torchs: torch's ``__iter__`` of the loader.
            published: whether the loader's figures are published, which keeps it alive during the epoch.
        """

    def errors(self, loader: Loader) -> list[SampleError]:
        """Returns the errors of the samples that the newest epoch skipped or replaced."""
        errors: list[SampleError] = loader._runner.errors
        return errors

    @abstractmethod
    def set_epoch(self, loader: Loader, epoch: int) -> None:
        """Sets the number of the next epoch, also on the samplers."""

    @abstractmethod
    def upcoming_epoch(self, loader: Loader) -> int:
        """Returns the number of the epoch that `begin` would begin."""

    @abstractmethod
    def resumes(self, loader: Loader) -> bool:
        """Returns whether `begin` would resume the epoch of a loaded state."""

    @abstractmethod
    def state_dict(self, loader: Loader) -> State:
        """Returns the loader's state."""

    @abstractmethod
    def load_state_dict(self, loader: Loader, state: State) -> None:
        """Makes the next epoch resume from a state."""


@dataclass(frozen=True)
class NativeRoute(Route):
    """Route on which headrace's threads deliver.

    Attributes:
        source: locates the samples.
        relied: the libraries' functions that it stands for; None for a field of several.
        staged: whether batches for a GPU are made in pinned memory and copied.
    """

    source: AnySource
    relied: Relied | None = field(default=None, compare=False, kw_only=True)
    native = True
    staged = False

    @property
    def streams(self) -> bool:
        """Whether samples are read from front to back, and no index leads to one."""
        return False

    @property
    @abstractmethod
    def product(self) -> object:
        """What an engine has to fit to make the batches."""

    @property
    @abstractmethod
    def kinds(self) -> object:
        """The classes of a sample's tensors."""

    @property
    @abstractmethod
    def draws(self) -> tuple[AnyColumn, ...]:
        """The random numbers of a sample."""

    @property
    @abstractmethod
    def recipes(self) -> Recipe | Recipes | None:
        """The lowered transform, or those of all image fields by name; None without images."""

    @property
    @abstractmethod
    def image_parts(self) -> Sequence[tuple[Recipe, BlobDataset]]:
        """The recipes of the images of a sample, with their sources."""

    @abstractmethod
    def renew(self, settings: Settings) -> NativeRoute:
        """Returns the route of the next epoch: this one, unless the dataset's content or its transforms have changed.

        Raises:
            NotNative, LoweringError: it does not run natively any more.
        """

    @abstractmethod
    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> Engine:
        """Returns an engine (threads and memory) for the batches.

        Args:
            slots_kept: number of batches whose memory it keeps.
            pin: whether it makes them in pinned memory.
        """

    @property
    def samples(self) -> int:
        """Number of samples of the dataset."""
        return len(self.source)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the source; cached because it takes milliseconds and a state may be saved with each batch."""
        return self.source.fingerprint()

    def python_effects(self, collate_fn: Function | None, *, batched: bool) -> PythonEffects:
        """Returns what the Python code of the route does beyond its samples; found out once for a `collate_fn`."""
        if collate_call.is_default(collate_fn, batched) or (
            collate_fn and recognition.mixing_of_samples(collate_fn) is not None
        ):
            collate_fn = None
        known: dict[int, PythonEffects] = vars(self).setdefault("_python_effects", {})
        found = known.get(id(collate_fn))
        if found is None:
            found = PythonEffects.of(self.image_parts, collate_fn)
            known.clear()
            known[id(collate_fn)] = found
            vars(self)["_collate_fn"] = collate_fn  # its id stays its own
        return found

    # ---- epochs ------------------------------------------------------------------------------------------------------

    def new_epochs(self, loader: Loader, *, keeps_base_seed: bool) -> Epochs:
        """Returns the epochs of a loader that has none yet; `keeps_base_seed`: see Epochs."""
        return Epochs(loader._find_ordering(), self.samples, loader._own.seed, keeps_base_seed=keeps_base_seed)

    def needed_for(self, what: str) -> NativeRoute:
        return self

    def begin(self, loader: Loader, torchs: Callable[[], Iterator[object]], published: bool) -> Iterator[object]:
        iterator: Iterator[object] = loader._runner.begin(
            loader._settings(), self, loader._epochs, loader if published else None
        )
        return iterator

    def set_epoch(self, loader: Loader, epoch: int) -> None:
        loader._epochs.set(epoch)

    def upcoming_epoch(self, loader: Loader) -> int:
        return loader._epochs.upcoming

    def resumes(self, loader: Loader) -> bool:
        return loader._epochs.resumes

    def state_dict(self, loader: Loader) -> State:
        return checkpoint.save_position(self._identity(loader), loader._epochs.position())

    def load_state_dict(self, loader: Loader, state: State) -> None:
        loader._epochs.resume(checkpoint.load_position(state, self._identity(loader), loader._epochs.rank))

    def _identity(self, loader: Loader) -> checkpoint.Identity:
        """Returns what a state of the loader belongs to."""
        seed, epochs = loader._own.seed, loader._epochs
        return checkpoint.Identity.of(
            seed, self.samples, self.fingerprint, epochs.order(), self.recipes, epochs.generators
        )


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

    def stack(self, collate_fn: Function | None) -> bool:
        """Returns whether images of a batch are stacked, and so need one size."""
        return self is Batches.MANY and collate_call.is_default(collate_fn, batched=True)
