"""Engine for images of different sizes: each one becomes a tensor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.destination import Destination
from headrace._engine.device_engine import move_tensors, moved_tensor
from headrace._engine.engine import Flight
from headrace._engine.image_engine import DLPACK_CODE, ImageEngine
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe


class Ragged(list[torch.Tensor]):
    """The images of a batch, each (C, H, W) with its own height and width."""


class RaggedEngine(ImageEngine):
    """Threads for a recipe whose output sizes vary; the memory of each image is reused when nothing refers to it.

    Args:
        recipe: a recipe that `varies`.
        destination: of the images; they are made in this machine's memory and copied to a device.
        stacked: whether batches are tensors (N, C, H, W), as ``default_collate`` makes them; N is 1 unless the loader's
            batch sampler has changed. Otherwise a batch is `Ragged`.
        threads, pin: as in `ImageEngine`.
    """

    def __init__(
        self, recipe: Recipe, layout: Layout, destination: Destination, *, stacked: bool, threads: int, pin: bool
    ) -> None:
        self._destination, self.stacked, self._pins = destination, stacked, pin
        super().__init__(recipe, layout, threads=threads, slots_kept=0)

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        return Flight(self._pipeline.submit(table, rows, draws))

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns the images of the batch, or those at `places`."""
        code = DLPACK_CODE[self.recipe.dtype]
        wanted = range(len(flight.batch)) if places is None else places
        images = [torch.utils.dlpack.from_dlpack(self._pipeline.sized_tensor(flight.batch, n, code)) for n in wanted]
        if self._pins:
            images = [image.pin_memory() for image in images]
        images = [moved_tensor(image, self._destination.device) for image in images]
        if not self.stacked:
            return Ragged(images)
        # A program may have changed its batch sampler: then torch's function stacks, or says that sizes differ.
        return images[0][None] if len(images) == 1 else torch.stack(images)

    def move_targets(self, targets: object) -> object:
        return move_tensors(targets, self._destination.device)
