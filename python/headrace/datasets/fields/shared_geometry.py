"""A geometry that the images of a sample share: the same random numbers for all, nearest pixels for masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from PIL import Image

from headrace._lowering.transform_library import class_origin, has_hooks
from headrace._recipe.draws.python_randomness import process_generator_states, restore_process_generators
from headrace.datasets.sources import BlobDataset, Variant
from headrace.datasets.sources.combined import ConcatSource
from headrace.transforms import Compose

_ALLOWED = {
    *("RandomResizedCrop", "RandomCrop", "CenterCrop", "ResizedCenterCrop", "Resize", "Pad", "Identity"),
    *("RandomHorizontalFlip", "RandomVerticalFlip"),
    *("RandomResize", "RandomShortestSize", "RandomZoomOut", "ScaleJitter"),
}
_CONTAINERS = {"Compose", "Sequential", "RandomApply", "RandomChoice", "RandomOrder"}
_LIBRARIES = ("headrace", "v1", "v2", "torch")


class Geometry:
    """A transform of a sample's images, as it is for images and as it is for masks.

    Args:
        transform: a crop, resize, flip or pad of headrace's or torchvision's, or a container of these. It is copied.
        masks: names of the fields that are masks.

    Raises:
        TypeError: a transform is none of these.
    """

    def __init__(self, transform: object, masks: Sequence[str]) -> None:
        _check_transform(transform)
        self._masks = tuple(masks)
        self._of_images, self._of_masks = deepcopy(transform), deepcopy(transform)
        _take_nearest(self._of_masks)

    def transform_of(self, name: str) -> Any:
        """Returns the transform of a field's images."""
        return self._of_masks if name in self._masks else self._of_images

    def apply(self, images: Mapping[str, Image.Image]) -> dict[str, object]:
        """Returns the transformed images by name.

        Each image's transform begins with the same states of the random generators. Afterwards, they are as the first
        image's transform left them.

        Raises:
            ValueError: the images have different sizes.
        """
        if trouble := unequal({name: (image.height, image.width) for name, image in images.items()}):
            raise ValueError(trouble)
        before, after = process_generator_states(), None
        made = {}
        for name, image in images.items():
            if after is not None:
                restore_process_generators(before)
            made[name] = self.transform_of(name)(image)
            after = after or process_generator_states()
        if after is not None:
            restore_process_generators(after)
        return made


class Shaped(ConcatSource):
    """A source of images whose transforms come after a geometry.

    Args:
        source: the images.
        geometry: the transform before the source's own.
    """

    def __init__(self, source: BlobDataset, geometry: Callable[[Any], object]) -> None:
        super().__init__([source])
        self._geometry = geometry

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(one._replace(transform=self._prepend_geometry(one.transform)) for one in super().variants)

    def _prepend_geometry(self, transform: Callable[[Any], object] | None) -> Compose:
        return Compose([self._geometry] if transform is None else [self._geometry, transform])


def unequal(sizes: Mapping[str, tuple[int, int]]) -> str:
    """Returns a sentence about fields whose images have different (height, width); "" if all have the same."""
    (first, size), *others = sizes.items()
    for name, other in others:
        if other != size:
            shown = [f"{width}x{height}" for height, width in (size, other)]
            return f"{first} is {shown[0]}, but {name} is {shown[1]}; a shared geometry needs equal sizes"
    return ""


def _check_transform(transform: Any) -> None:
    library, name = class_origin(type(transform)) or ("", "")
    if library in _LIBRARIES and name in _CONTAINERS and not has_hooks(transform):
        for inner in transform if name == "Sequential" else transform.transforms:
            _check_transform(inner)
    elif library not in _LIBRARIES or name not in _ALLOWED or has_hooks(transform):
        raise TypeError(
            f"geometry may hold headrace's and torchvision's crops, resizes, flips and pads, and Compose, RandomApply, "
            f"RandomChoice and RandomOrder of these, not {transform!r}; give it to the fields that need it as transform"
        )


def _take_nearest(transform: object) -> None:
    """Makes a transform, and those inside it, take nearest pixels and pad with 0."""
    for one in transform if isinstance(transform, torch.nn.Sequential) else getattr(transform, "transforms", []):
        _take_nearest(one)
    if hasattr(transform, "interpolation"):
        given = transform.interpolation
        # torchvision takes members of its own enum alone, or names, or Pillow's numbers.
        transform.interpolation = 0 if isinstance(given, int) else type(given)("nearest")
    if hasattr(transform, "fill"):
        transform.fill = 0
    if hasattr(transform, "_fill"):
        transform._fill = {"others": 0}
