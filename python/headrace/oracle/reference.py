"""The oracle: a sample as Pillow and torch make it from the same draws, without any native code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch.utils.data import Dataset

import headrace.oracle.calls
import headrace.oracle.colour  # noqa: F401  # their steps are registered
from headrace.images.pil_tensor import pil_to_tensor
from headrace.oracle import tensor as reference_tensor
from headrace.oracle.containers import apply_all
from headrace.randomness.draws import Draws
from headrace.recipe.recipe import Recipe
from headrace.recipe.steps import Erase


def reference_sample(image: Image.Image, recipe: Recipe, draws_row: Sequence[float] | npt.NDArray[Any]) -> torch.Tensor:
    """One finished sample.

    Args:
        image: mode RGB, or L where the recipe was lowered for it; any size; not changed.
        draws_row: float64, (k,), a row of `Draws.batch`.

    Returns:
        (channels, height, width) of the recipe for such an image, in its dtype, contiguous.

    Raises:
        ValueError: the image is too small for a step, in torchvision's words.
    """
    draws = [float(draw) for draw in draws_row]
    recipe = recipe.of(image.height, image.width)
    on_image = next((i for i, step in enumerate(recipe.steps) if isinstance(step, Erase)), len(recipe.steps))
    made = apply_all(recipe.steps[:on_image], image, draws)
    if isinstance(made, torch.Tensor):  # by a call that does all the rest
        return made.contiguous()
    tensor = pil_to_tensor(made).contiguous()
    return reference_tensor.finish(tensor, recipe.steps[on_image:], recipe.pointwise, draws).contiguous()


class ImageSource(Protocol):
    """What the oracle asks of a source; headrace's own datasets have it."""

    @property
    def has_targets(self) -> bool: ...

    def __len__(self) -> int: ...

    def image(self, index: int) -> Image.Image:
        """A sample as Pillow opens it, in mode RGB or L."""

    def target(self, index: int) -> Any:
        """Its target, `target_transform` applied; asked for only where there are targets."""


class ReferenceDataset(Dataset[Any]):
    """The samples of one epoch, by (index, occurrence), for a torch DataLoader whose sampler yields such pairs.

    A sample is (image, target), or the image alone where the source has no targets.

    Args:
        source: of the images and targets.
        recipe, seed: those of the loader.
        epoch: may be set anew between epochs.
    """

    def __init__(self, source: ImageSource, recipe: Recipe, seed: int, epoch: int = 0) -> None:
        self.source = source
        self.recipe = recipe
        self.epoch = epoch
        self._draws = Draws(recipe.columns, seed)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, key: tuple[int, int]) -> Any:
        return self.sample(key[0], self.draws_of(*key))

    def draws_of(self, index: int, occurrence: int) -> npt.NDArray[np.float64]:
        """The draws of one sample in this epoch: float64, (k,)."""
        row: npt.NDArray[np.float64] = self._draws.batch(self.epoch, [index], [occurrence])[0]
        return row

    def sample(self, index: int, draws_row: npt.NDArray[np.float64]) -> Any:
        """One sample made with given draws."""
        image = reference_sample(self.source.image(index), self.recipe, draws_row)
        return (image, self.source.target(index)) if self.source.has_targets else image
