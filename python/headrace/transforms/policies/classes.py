"""The augmentation policies as transforms of one image: RandAugment, TrivialAugmentWide, AutoAugment."""

from __future__ import annotations

from typing import ClassVar

import torch
from PIL import Image
from torch.utils._pytree import tree_flatten, tree_unflatten

from headrace._recipe.images.part_kinds import Kind, has_image, kind_of
from headrace.transforms._arguments import Fills, Interpolation, fill_of, fills_by_class
from headrace.transforms._base import BESIDE_IMAGES, PIL_ALONE, Transform
from headrace.transforms.policies import magnitudes
from headrace.transforms.policies.learned import AutoAugmentPolicy, pairs_of
from headrace.transforms.policies.operations import operate


class _Policy(Transform):
    _takes = PIL_ALONE
    _AUGMENTATION_SPACE: ClassVar[magnitudes.Space] = {}

    def __init__(self, *, interpolation: Interpolation, fill: Fills) -> None:
        super().__init__()
        self.interpolation = interpolation
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill

    def forward(self, *inputs: object) -> object:
        parts, tree = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        place = self._place_of_image(parts)
        self._takes_or_refuses(parts[place])
        parts[place] = self._augment_image(parts[place])
        return tree_unflatten(parts, tree)

    def _place_of_image(self, parts: list[object]) -> int:
        """Returns the number of the only image. Raises TypeError for several, none, or annotations beside it."""
        found = []
        takes_pure = not has_image(parts)
        for place, part in enumerate(parts):
            kind = kind_of(part)
            if kind in BESIDE_IMAGES:
                raise TypeError(f"Inputs of type {type(part).__name__} are not supported by {type(self).__name__}()")
            if kind in (Kind.PIL, Kind.IMAGE, Kind.VIDEO) or (kind is Kind.PURE and takes_pure):
                found.append(place)
                takes_pure = False
        if not found:
            raise TypeError("Found no image in the sample.")
        if len(found) > 1:
            raise TypeError(
                "Auto augment transformations are only properly defined for a single image or video, but found "
                f"{len(found)}."
            )
        return found[0]

    def _augment_image(self, image: Image.Image) -> Image.Image:
        raise NotImplementedError

    def _apply_operation(
        self, image: Image.Image, name: str, bins: int, number: int | None = 0, *, drawn: bool = False
    ) -> Image.Image:
        """Applies an operation, after drawing its sign. `number`: its bin; `drawn`: a random one, if it has bins."""
        of_bins, signed = self._AUGMENTATION_SPACE[name]
        found = of_bins(bins, image.height, image.width)
        magnitude = 0.0
        if found is not None:
            magnitude = float(found[int(torch.randint(bins, ())) if drawn else number])
            if signed and torch.rand(()) <= 0.5:
                magnitude *= -1
        return operate(image, name, magnitude, self.interpolation, fill_of(self._fill, type(image)))

    def _draw_operation_name(self) -> str:
        names = tuple(self._AUGMENTATION_SPACE)
        return names[int(torch.randint(len(names), ()))]


class RandAugment(_Policy):
    """Applies `num_ops` random operations of 14, each as strong as bin `magnitude` of `num_magnitude_bins` says.

    A sample has one image; the operations move its pixels, so annotations beside it are refused.

    Args:
        num_ops: number of operations, 0 or more.
        magnitude: number of the bin, 0 the weakest.
        num_magnitude_bins: number of bins.
        interpolation: filter of shears, translations and rotations: nearest, bilinear or bicubic.
        fill: what these show outside the image: one number or one per channel, or a dict of image class to fill.
            None: 0.

    Raises:
        ValueError: `num_ops` is not a whole number, 0 or more.
        TypeError: `fill` has the wrong type. When called: the sample has no image, several, or annotations.
    """

    _AUGMENTATION_SPACE = magnitudes.RAND_AUGMENT

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops should be a non-negative integer, but got {num_ops} instead.")
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def _augment_image(self, image: Image.Image) -> Image.Image:
        for _ in range(self.num_ops):
            image = self._apply_operation(image, self._draw_operation_name(), self.num_magnitude_bins, self.magnitude)
        return image


class TrivialAugmentWide(_Policy):
    """Applies one random operation of 14, in a random one of `num_magnitude_bins` strengths.

    A sample has one image; the operations move its pixels, so annotations beside it are refused.

    Args:
        num_magnitude_bins: number of strengths.
        interpolation, fill: as in `RandAugment`.

    Raises:
        TypeError: `fill` has the wrong type. When called: the sample has no image, several, or annotations.
    """

    _AUGMENTATION_SPACE = magnitudes.TRIVIAL_AUGMENT_WIDE

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augment_image(self, image: Image.Image) -> Image.Image:
        return self._apply_operation(image, self._draw_operation_name(), self.num_magnitude_bins, drawn=True)


class AutoAugment(_Policy):
    """Applies a random pair of operations of a learned policy, each with its probability and strength.

    A sample has one image; the operations move its pixels, so annotations beside it are refused.

    Args:
        policy: the policy, by the data set that it was learned on.
        interpolation, fill: as in `RandAugment`.

    Raises:
        ValueError: `policy` is not an AutoAugmentPolicy.
        TypeError: `fill` has the wrong type. When called: the sample has no image, several, or annotations.
    """

    _AUGMENTATION_SPACE = magnitudes.AUTO_AUGMENT

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Interpolation = "nearest",
        fill: Fills = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.policy = policy
        self._policies = pairs_of(policy)

    def _augment_image(self, image: Image.Image) -> Image.Image:
        for name, p, number in self._policies[int(torch.randint(len(self._policies), ()))]:
            if torch.rand(()) <= p:
                image = self._apply_operation(image, name, 10, number)
        return image
