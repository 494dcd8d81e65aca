"""What makes batches: the interface of every engine, a batch in flight, and a failed sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.lifetimes.finalizers import Ending
from headrace._base.native import core
from headrace._engine.counters.counters import Counters
from headrace._engine.lanes.call_lane import RowMetadata
from headrace._engine.lanes.worker_info import WorkerValues


@dataclass(frozen=True)
class Failure:
    """One failed sample of a batch.

    Attributes:
        sample: number in the batch that was submitted; in a repair, an index into its places.
        original: the exception that Python code raised; None for native failures.
        part: the part of the sample that failed, for samples of several parts.
    """

    sample: int
    stage: str
    reason: str
    errno: int
    original: BaseException | None
    part: str = ""


@dataclass(eq=False)
class Flight:
    """A batch in flight.

    Attributes:
        batch: the native batch; holds the tensor that it is written into, unless that is a slot of the pipeline's pool.
        stream: handle of the stream that this tensor was allocated on; 0 without a device.
        engine: the engine that makes it, if there are several.
    """

    batch: core.Batch
    stream: int = 0
    engine: Engine | None = None


class Engine(Ending, ABC):
    """Threads and memory that make the batches of one recipe, or of rows of one layout.

    Attributes:
        decoder: the stage of the files that Python threads decode.
        endings: functions in C that end the threads; those of engines that are made later are added.
    """

    endings: list[Callable[[], object]]
    decoder: str = "pillow"

    @abstractmethod
    def submit(self, table: Any, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        """Starts a batch.

        Args:
            table: where the samples' bytes are.
            rows: int64 (n,), rows of `table`.
            draws: float64 (n, k), random numbers of each sample.
        """

    @abstractmethod
    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: Any,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        """Starts to make other samples in some `places` of a complete batch."""

    @abstractmethod
    def wait(self, flight: Flight, seconds: float) -> bool:
        """Waits and returns whether the batch is complete within `seconds`. Raises KeyboardInterrupt promptly."""

    @abstractmethod
    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples in order. A second call returns none."""

    @abstractmethod
    def tensor(self, flight: Flight, places: list[int] | None = None) -> object:
        """Returns the n samples of a batch as one value; `places` (ascending) selects samples."""

    @abstractmethod
    def single(self, batch: Any) -> object:
        """Returns the sample of a batch of one, without collation."""

    @abstractmethod
    def cancel(self, flight: Flight) -> None:
        """Stops a batch that is no longer needed: no further sample of it is begun, and its exceptions are dropped.

        If the batch is not in a slot (pinned memory, a device, no threads), blocks without the GIL until no thread
        writes to its memory.
        """

    @abstractmethod
    def counters(self) -> Counters:
        """Returns all counters since the engine started."""

    @abstractmethod
    def resize(self, threads: int) -> None:
        """Lets this many native threads work, 1 or more; batches do not depend on it. Does nothing after `close`.

        Raises:
            RuntimeError: the system allows no more threads, or the engine was made without any.
        """

    @abstractmethod
    def bind_threads(self, cores: Sequence[int]) -> None:
        """Makes the native threads and the Python threads, also those of later, run on these cores only."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Number of slots, free or in use."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the threads have ended or are about to."""

    @abstractmethod
    def serves_in_this_thread(self) -> bool:
        """Returns whether the calling thread is one of this engine's Python threads, working on a sample."""

    @abstractmethod
    def abandon_steps(self) -> None:
        """Makes `close` not wait for the jobs that Python threads are running."""

    @abstractmethod
    def makes(self, product: object) -> bool:
        """Returns whether this engine can be used for another epoch of `product`: a recipe, a layout of rows, or the
        products of several parts."""

    @abstractmethod
    def has_current_limit(self) -> bool:
        """Returns whether the engine was made with Pillow's present limit of pixels."""

    @abstractmethod
    def close(self) -> None:
        """Ends the threads; Python threads first finish their current step. Batches already handed out stay valid.
        Idempotent."""

    def set_metadata_reader(self, metadata: RowMetadata) -> None:
        """Sets the function from which Python steps get the metadata (Pillow's ``info``) of the sample of a row."""

    def work_as(self, workers: WorkerValues) -> None:
        """Sets what ``get_worker_info()`` returns in Python steps. Only the first call counts, as with torch's
        persistent workers."""

    def check_stream(self) -> None:
        """Raises RuntimeError if the caller's current stream cannot take a batch; called before any other work."""

    def move_targets(self, targets: object) -> object:
        """Returns a batch's targets on the device of its images."""
        return targets

    def stages(self) -> list[tuple[str, int, int]]:
        """Returns (stage, items, busy nanoseconds summed over threads) since the engine started."""
        return [(name, items, ns) for name, (items, ns) in self.counters().stages.items()]

    @property
    def engines(self) -> int:
        """Number of engines that make a batch, each with threads of its own."""
        return 1
