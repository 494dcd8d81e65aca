"""The worker's part with ``batch_size=None``: `default_convert` leaves tensors as they are, and records take their
places in each sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace._loading.doors.tensors.deferred_tensor import (
    Deferred,
    class_of,
    is_deferring_possible,
    kind_for,
    recorded_in,
)
from headrace._loading.doors.tensors.memory_layout import Layout as TensorLayout
from headrace._loading.records.leaves_of_batches import map_leaves
from headrace._loading.records.record_batch import RecordBatch
from headrace._loading.records.record_collation import RecordCollation
from headrace._recipe.images.memory_format import Layout

_LAYOUTS = {TensorLayout.PLANAR: Layout.PLANAR, TensorLayout.CHANNELS_LAST: Layout.CHANNELS_LAST}
_MOST_SIZES = 4  # the main process has an engine for each


class RecordConversion(RecordCollation):
    """Makes the records of one sample after another. Lists, tuples and mappings around them are copies, as torch's
    pinning makes them; what the program keeps is not changed."""

    _sizes: frozenset[tuple[int, ...]] = frozenset()

    def begin(self, samples: object) -> None:
        """Called before `default_convert`, which calls nothing for tensors."""
        self._forget()

    def finish(self, sample: object) -> object:
        """Called with what `default_convert` has returned; returns it, or a `RecordedBatch`."""
        return super().finish(map_leaves(sample, self._record_single))

    def _record_single(self, leaf: Any) -> object:
        if not isinstance(leaf, Deferred):
            return leaf
        found = self._why_or_record(leaf)
        if isinstance(found, RecordBatch):
            return found
        tensor: Any = leaf
        self._note_reason([tensor], found)
        self._made_here[id(leaf)] = tensor, found
        return leaf

    def _why_or_record(self, tensor: Any) -> RecordBatch | str:
        kind, recorded = class_of(tensor), recorded_in(tensor)
        if not is_deferring_possible() or kind_for(kind) is None:
            return "torch's calls are watched"
        contents = self._contents_of([tensor])
        if isinstance(contents, str):
            return contents
        state = contents[0].state
        if recorded is None or recorded.strides != state.layout.strides(state.shape):
            return "their values are rearranged"
        if state.shape not in self._sizes and len(self._sizes) >= _MOST_SIZES:
            return "their sizes differ"
        made = self._record_contents(contents, _LAYOUTS[state.layout])
        if isinstance(made, str):
            return made
        self._sizes |= {state.shape}
        return replace(made, shape=state.shape, single=(kind, recorded.strides))
