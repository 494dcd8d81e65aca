"""The oracle: makes a sample by Pillow and torch from the same draws, without native code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch.utils.data import Dataset

import headrace._oracle.colour
import headrace._oracle.sizes
import headrace._oracle.steps
import headrace._oracle.tensor_effects
import headrace._oracle.warp  # noqa: F401  # imported to register their steps
from headrace._base.types import Array
from headrace._oracle import tensor as reference_tensor
from headrace._oracle.choice_steps import apply_steps
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps.recipe import Recipe
from headrace._recipe.steps.steps import EraseStep

_T = TypeVar("_T")


def reference_sample(image: Image.Image, recipe: Recipe, draws_row: Sequence[float] | Array) -> Any:
    """Returns one finished sample.

    Args:
        image: an image of any size, in mode RGB, or L if the recipe was lowered for one channel; it is not changed.
        recipe: the recipe.
        draws_row: the sample's draws, float64 (k,): a row of `Draws.batch`.

    Returns:
        Tensor (channels, height, width), contiguous; size and dtype are those of the recipe for this image. If the
        recipe has views, they are packed as it says.

    Raises:
        ValueError: the image is too small for a step; the message is torchvision's.
    """
    if recipe.views:
        return recipe.pack_sample([reference_sample(image, view, draws_row) for view in recipe.views])
    draws = [float(draw) for draw in draws_row]
    recipe = recipe.choose_variant(image.height, image.width)
    on_image = next((i for i, step in enumerate(recipe.steps) if isinstance(step, EraseStep)), len(recipe.steps))
    made = apply_steps(recipe.steps[:on_image], image, draws)
    if isinstance(made, torch.Tensor):  # a Texture, or a Call that has run all remaining transforms
        return made.contiguous()
    tensor = pil_to_tensor(made).contiguous()
    return reference_tensor.finish_tensor(tensor, recipe.steps[on_image:], recipe.pointwise, draws).contiguous()


def try_samples(make: Callable[[int], _T], index: int, length: int, on_error: str) -> _T | None:
    """Returns what `make` makes of sample `index`, or of the one that is delivered for it if that fails.

    Args:
        length: number of samples.
        on_error: "raise": the error is raised; "skip": None is returned; "replace": the next sample that can be made
            is; None if none can.
    """
    if on_error == "raise":
        return make(index)
    for _ in range(length if on_error == "replace" else 1):
        try:
            return make(index)
        except Exception:
            index = (index + 1) % length
    return None


class ImageSource(Protocol):
    """The part of a source that the oracle uses; headrace's datasets provide it."""

    @property
    def has_targets(self) -> bool: ...

    def __len__(self) -> int: ...

    def image(self, index: int) -> Image.Image:
        """Returns the sample as Pillow opens it, in mode RGB or L."""

    def target(self, index: int) -> object:
        """Returns the sample's target after `target_transform`; called only if there are targets."""


class ReferenceDataset(Dataset[object]):
    """The samples of one epoch by (index, occurrence), for a torch DataLoader whose sampler yields such pairs.

    A sample is (image, target), or only the image if the source has no targets.

    Args:
        source: provides the images and targets.
        recipe, seed: those of the loader.
        epoch: number of the epoch; the attribute may be changed between epochs.
    """

    def __init__(self, source: ImageSource, recipe: Recipe, seed: int, epoch: int = 0) -> None:
        self.source = source
        self.recipe = recipe
        self.epoch = epoch
        self._draws = Draws(recipe.columns, seed)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, key: tuple[int, int]) -> object:
        return self.sample(key[0], self.draws_of(*key))

    def draws_of(self, index: int, occurrence: int) -> npt.NDArray[np.float64]:
        """Returns the draws of one sample in this epoch, float64 (k,)."""
        row: npt.NDArray[np.float64] = self._draws.batch(self.epoch, [index], [occurrence])[0]
        return row

    def sample(self, index: int, draws_row: npt.NDArray[np.float64]) -> object:
        """Returns one sample made from the given draws."""
        image = reference_sample(self.source.image(index), self.recipe, draws_row)
        return (image, self.source.target(index)) if self.source.has_targets else image
