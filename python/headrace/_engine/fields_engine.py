"""Engine for samples of several fields: one engine for each part of them, which makes it for the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core, span
from headrace._engine.columns_engine import ColumnsEngine
from headrace._engine.composite_engine import PartsEngine, PartsFlight
from headrace._engine.counters.counters import Counters, sum_counters
from headrace._engine.destination import Destination
from headrace._engine.device_engine import move_tensors, moved_tensor
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.lanes.call_lane import RowMetadata
from headrace._engine.ragged_engine import Ragged
from headrace._recipe.object_boxes.followed_steps import move_boxes
from headrace._recipe.object_boxes.object_values import BoxPart, ObjectTensor

#: Returns a sentence about images of different (height, width) in one sample; "" if all have the same.
Unequal = Callable[[Mapping[str, tuple[int, int]]], str]


@dataclass(eq=False)
class _Given:
    """What boxes are moved by, which the consumer's thread does when the batch is complete.

    Attributes:
        rows: int64 (n,), the samples in their fields.
        draws: float64 (n, columns).
        repairs: the samples that were made again: their places, their rows and their flight.
        sizes: int32 (n, 2), (height, width) of the images that boxes follow, by field, once the batch is complete.
    """

    rows: npt.NDArray[np.int64]
    draws: npt.NDArray[np.float64]
    repairs: list[tuple[list[int], npt.NDArray[np.int64], PartsFlight[str]]] = field(default_factory=list)
    sizes: dict[str, npt.NDArray[np.int32]] = field(default_factory=dict)


@dataclass(eq=False)
class FieldsFlight(PartsFlight[str]):
    """A batch of samples of several fields in flight."""

    given: _Given | None = None


class FieldsEngine(PartsEngine[str]):
    """Submits each batch to all engines, and puts together what they make.

    The table of a batch holds the tables of all parts, and the row of each sample in them: see
    `headrace.datasets.fields.fields_source.Tables`.

    Args:
        parts: the engines by part.
        columns: for each part the columns of the draws that it reads.
        destination: where the batches end; tensors of gathered rows are moved there.
        unequal: where the images of a sample share a geometry: compares their sizes.
        boxes: those that follow images; they are moved in the consumer's thread.
    """

    _new_flight = FieldsFlight

    def __init__(
        self,
        parts: Mapping[str, Engine],
        columns: Mapping[str, npt.NDArray[np.int64]],
        destination: Destination,
        unequal: Unequal | None = None,
        boxes: Sequence[BoxPart] = (),
    ) -> None:
        super().__init__(parts)
        self._boxes = tuple(boxes)
        self._columns = dict(columns)
        self._destination, self._unequal = destination, unequal
        if any(one.decoder == "video" for one in self._images().values()):
            self.decoder = "video"

    def _images(self) -> dict[str, Engine]:
        return {name: one for name, one in self._parts.items() if not isinstance(one, ColumnsEngine)}

    def set_metadata_reader(self, metadata: RowMetadata) -> None:
        """Sets the function that returns, for a sample, the function that reads each image's metadata, by part."""
        for name, engine in self._images().items():
            engine.set_metadata_reader(lambda index, name=name: metadata(index)[name]())  # type: ignore[misc]

    def _select_part(
        self, part: str, table: Any, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]
    ) -> tuple[core.BlobTable, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        return table.parts[part], rows if table.rows is None else table.rows[rows], draws[:, self._columns[part]]

    def submit(self, table: Any, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        flight = super().submit(table, rows, draws)
        if self._boxes:
            assert isinstance(flight, FieldsFlight)
            flight.given = _Given(rows if table.rows is None else table.rows[rows], draws)
        return flight

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: Any,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        made = super().repair(flight, places, table, rows, draws)
        assert isinstance(flight, FieldsFlight) and isinstance(made, FieldsFlight)
        if flight.given is not None:
            flight.given.repairs.append((places, rows if table.rows is None else table.rows[rows], made))
        return made

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples in order, each with the first of its parts that failed."""
        found = {failure.sample: failure for failure in super().failures(flight)}
        for failure in self._unequal_sizes(self._flights(flight)):
            found.setdefault(failure.sample, failure)
        return [found[sample] for sample in sorted(found)]

    def _name_failure(self, failure: Failure, part: str) -> Failure:
        return replace(failure, part=part)

    def _unequal_sizes(self, flights: dict[str, Flight]) -> Iterator[Failure]:
        """Yields a failure for each sample whose images have different sizes; that of a failed image is (0, 0)."""
        if self._unequal is None:
            return
        sizes = {name: flights[name].batch.sizes for name in self._images()}
        first = next(iter(sizes.values()))
        differ = np.any([(one != first).any(axis=1) for one in sizes.values()], axis=0)
        for sample in np.flatnonzero(differ).tolist():
            named = {name: (int(one[sample, 0]), int(one[sample, 1])) for name, one in sizes.items()}
            yield Failure(sample, "plan", self._unequal(named), 0, None)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> dict[str, object]:
        """Returns what each engine made, by part, and the boxes with their labels, by field."""
        assert isinstance(flight, FieldsFlight)
        images = self._images()
        given = flight.given
        if given is not None and not given.sizes:
            self._read_sizes(flight, given)
        made = self.collect_parts(flight, places)
        batch = {name: part if name in images else self.move_targets(part) for name, part in made.items()}
        return batch if given is None else batch | self._move_boxes(given, places)

    def _read_sizes(self, flight: FieldsFlight, given: _Given) -> None:
        """Reads the sizes of the images, before their engines give the batch away, and what repairs have changed."""
        sizes = {name: flight.parts[name].batch.sizes for name in {one.image for one in self._boxes}}
        for places, rows, repair in given.repairs:
            given.rows = given.rows.copy()
            given.rows[places] = rows
            for name, one in sizes.items():
                one[places] = repair.parts[name].batch.sizes
        given.sizes = sizes

    def _move_boxes(self, given: _Given, places: list[int] | None) -> dict[str, object]:
        chosen = np.arange(len(given.rows)) if places is None else np.array(places, dtype=np.int64)
        made: dict[str, object] = {}
        with span("boxes"):
            for one in self._boxes:
                sizes = given.sizes[one.image][chosen].astype(np.int64)
                draws = given.draws[np.ix_(chosen, self._columns[one.image])]
                moved = move_boxes(one, given.rows[chosen], sizes, draws)
                made |= {name: self._move_each(values) for name, values in moved.items()}
        return made

    def _move_each(self, values: list[torch.Tensor]) -> Ragged:
        here, device = self._destination.way == "memory", self._destination.device
        return Ragged(values if here else [moved_tensor(one, device) for one in values])

    def single(self, batch: Mapping[str, Any]) -> dict[str, object]:
        return {
            name: self._parts[name].single(one) if name in self._parts else one[0].as_subclass(ObjectTensor)
            for name, one in batch.items()
        }

    def move_targets(self, targets: object) -> object:
        return targets if self._destination.way == "memory" else move_tensors(targets, self._destination.device)

    def counters(self) -> Counters:
        """Returns the counters of the images' engines, or of those of videos; of gathered rows if there is neither."""
        counted = [one for one in self._images().values() if one.decoder == self.decoder]
        return sum_counters(one.counters() for one in counted or self._parts.values())

    @property
    def engines(self) -> int:
        return len(self._parts)

    def makes(self, product: object) -> bool:
        return (
            not self.closed
            and isinstance(product, Mapping)
            and list(product) == [*self._parts, *(one.name for one in self._boxes)]
            and all(engine.makes(product[name]) for name, engine in self._parts.items())
            and all(one == product[one.name] for one in self._boxes)
        )
