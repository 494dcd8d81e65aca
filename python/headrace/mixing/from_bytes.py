"""torchvision's MixUp and CutMix of finished batches that are still bytes: each float is written to memory once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headrace.base.native import core
from headrace.engine.layout import Layout
from headrace.engine.storage_pool import StoragePool
from headrace.mixing import programs, torchvision_mixes
from headrace.recipe.recipe import Recipe

_VECTORS = ("avx2", "avx512")  # sets whose loops compute elements; by table, in place is faster


class ByteMixing:
    """Mixes batches of bytes into batches of a recipe's values.

    Attributes:
        finished: the recipe whose values a batch has.
        recipe: the same recipe up to the bytes; what an engine has to make.
    """

    def __init__(self, finished: Recipe, table: core.ByteTable, *, kept: int, pin: bool) -> None:
        self.finished, self._table, self._pin = finished, table, pin
        same = torch.arange(256, dtype=torch.uint8).repeat(finished.channels, 1)
        self.recipe = replace(finished, lut=same, pointwise=_unchanged)
        self._storages = StoragePool(kept)

    @classmethod
    def of(
        cls, function: Callable[[Any], Any], recipe: Recipe, layout: Layout, *, kept: int, pin: bool
    ) -> ByteMixing | None:
        """Returns what a loader's collate_fn and recipe allow; None if the finished batch has to be mixed in place.

        Args:
            kept: number of batches whose memory is kept for the next ones.
            pin: whether batches are in pinned memory.
        """
        plain = recipe.kind is torch.Tensor and recipe.erased is None and not recipe.finished_here
        whole = not (recipe.variants or recipe.views or recipe.varies) and layout is Layout.PLANAR
        if not plain or not whole or recipe.dtype is not torch.float32 or recipe.channels != 3:
            return None
        if core.instruction_set() not in _VECTORS or programs.torchvisions_mix(function) is None:
            return None
        table = core.ByteTable.of(recipe.lut.contiguous().numpy())
        return None if table is None else cls(recipe, table, kept=kept, pin=pin)

    def mixed(self, function: Callable[[Any], Any], images: torch.Tensor, labels: Any) -> Any:
        """Returns what a collate_fn returns for a batch; None if it does not mix plain labels with torchvision's mix.

        Args:
            images: bytes (n, 3, H, W).
            labels: as `default_collate` returns them.
        """
        mix = programs.torchvisions_mix(function)
        if mix is None or type(labels) is not torch.Tensor:
            return None
        return torchvision_mixes.twin(mix, self)(images, labels)

    def plain(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the values of a batch of bytes."""
        return self.cut(images, (0, 0, 0, 0))

    def takes(self, batch: Any) -> bool:
        """Whether `mix` and `cut` take this; see `torchvision_mixes.Writer`."""
        return type(batch) is torch.Tensor and batch.dtype is torch.uint8

    def mix(self, batch: torch.Tensor, share: float) -> torch.Tensor:
        """Returns each sample's values times `share`, plus those of the sample before it times ``1 - share``."""
        with torch._C.DisableTorchFunction():  # modes of the calling thread would see each of these
            made = self._empty(batch)
            self._table.mix(batch.numpy(), _elements(made), share, 1.0 - share)
        return made

    def cut(self, batch: torch.Tensor, box: tuple[int, int, int, int]) -> torch.Tensor:
        """Returns each sample's values, and within the box those of the sample before it."""
        with torch._C.DisableTorchFunction():
            made = self._empty(batch)
            self._table.cut(batch.numpy(), _elements(made), tuple(map(int, box)))
        return made

    def _empty(self, batch: torch.Tensor) -> torch.Tensor:
        if self._pin:
            return torch.empty(batch.shape, dtype=torch.float32, device="cpu", pin_memory=True)
        storage = self._storages.take(batch.numel() * torch.float32.itemsize)
        return torch.empty(0, dtype=torch.float32, device="cpu").set_(storage, 0, batch.shape)


def _elements(made: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns the memory of a contiguous tensor. ``made.numpy()`` would leave a storage that nothing may resize."""
    elements = (ctypes.c_float * made.numel()).from_address(made.data_ptr())
    return np.frombuffer(memoryview(elements), np.float32).reshape(made.shape)


def _unchanged(images: torch.Tensor) -> torch.Tensor:
    return images
