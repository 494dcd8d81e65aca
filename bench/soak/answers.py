"""Checksums of the oracle's samples, made by Pillow and torch in a process that makes no native batches.

    python -m bench.soak.answers FOLDER IMAGES EPOCHS

writes FOLDER/answers-IMAGES-EPOCHS.npz: of each recipe and epoch the order of the samples, and a checksum of each.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench.soak.material import Material
from bench.soak.recipes import RECIPES, SEED, recipe

Sums = npt.NDArray[np.uint32]


def checksums(images: Any) -> list[int]:
    """Returns one CRC-32 per sample of a batch: of the values in the order (channel, row, column), of all views."""
    parts = [images] if isinstance(images, torch.Tensor) else list(images)
    sums = [0] * len(parts[0])
    for part in parts:
        plain = part.contiguous()
        values = (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy()
        sums = [zlib.crc32(one.data, before) for one, before in zip(values, sums, strict=True)]
    return sums


class Answers:
    """The orders and checksums in a file that `made` returned."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as held:
            self._held = {name: held[name] for name in held.files}

    def order(self, recipe_name: str, epoch: int) -> list[int]:
        """Returns the samples of an epoch, in order."""
        order: list[int] = self._held[f"{recipe_name} order"][epoch].tolist()
        return order

    def sums(self, recipe_name: str, epoch: int) -> list[int]:
        """Returns the checksums of the samples of an epoch, by their numbers in the dataset."""
        sums: list[int] = self._held[f"{recipe_name} sums"][epoch].tolist()
        return sums


def made(material: Material, epochs: int) -> Path:
    """Returns the file of answers; another process makes it if it is missing."""
    path = material.folder / f"answers-{material.count}-{epochs}.npz"
    if not path.exists():
        arguments = [str(material.folder), str(material.count), str(epochs)]
        subprocess.run([sys.executable, "-m", "bench.soak.answers", *arguments], check=True)
    return path


def _epochs(material: Material, name: str, epochs: int) -> Iterator[tuple[list[int], Sums]]:
    import headrace

    transform, options = recipe(name)
    loader = headrace.DataLoader(material.dataset("memory", transform), 64, shuffle=True, seed=SEED, **options)
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        order: list[int] = []
        sums = np.zeros(material.count, np.uint32)
        for images, labels in loader.reference():
            order += labels.tolist()
            sums[labels.numpy()] = checksums(images)
        if sorted(order) != material.labels:
            raise RuntimeError(f"epoch {epoch} of {name} is no permutation of the samples")
        yield order, sums


def _no_engine(*_: Any, **__: Any) -> None:
    raise RuntimeError("a native engine in the process of the oracle")


def main() -> None:
    from headrace._engine.engine import Engine

    Engine.__new__ = _no_engine  # type: ignore[assignment, method-assign]
    torch.set_num_threads(1)
    folder, count, epochs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    material, held = Material(folder, count), {}
    for name in RECIPES:
        orders, sums = zip(*_epochs(material, name, epochs), strict=True)
        held[f"{name} order"], held[f"{name} sums"] = np.array(orders), np.array(sums)
    unfinished = folder / "answers-unfinished.npz"
    np.savez(unfinished, allow_pickle=False, **held)
    unfinished.rename(folder / f"answers-{count}-{epochs}.npz")


if __name__ == "__main__":
    main()
