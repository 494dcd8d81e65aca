"""One operation of an augmentation policy as native steps, for each of its magnitudes and signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.colour import make_posterize
from headrace._recipe.arithmetic import functional_pil
from headrace.transforms import filter_name
from headrace.transforms.policies.operations import affine_matrix

Steps = tuple[S.Step, ...]
#: Of one operation; None: it has none.
Magnitudes = list[float] | None

_FACTORS: dict[str, Callable[[S.Constant], S.Step]] = {
    "Brightness": S.Brightness,
    "Color": S.Saturation,
    "Contrast": S.Contrast,
    "Sharpness": S.Sharpness,
}
_PLAIN: dict[str, Steps] = {
    "Identity": (),
    "AutoContrast": (S.Autocontrast(),),
    "Equalize": (S.Equalize(),),
    "Invert": (S.Invert(),),
}
#: Filters with which Pillow moves pixels.
WARPS = ("nearest", "bilinear", "bicubic")
_ANY_SIZES = ((224, 224), (31, 470))  # of images, to find out whether magnitudes depend on the size


def magnitudes_of_policy(
    transform: Any, library: str, bins: int, size: tuple[int, int]
) -> dict[str, tuple[Magnitudes, bool]]:
    """Returns the magnitudes of each operation, as a policy itself computes them, and whether it has a sign."""
    if library == "v1":
        sized = () if type(transform).__name__ == "TrivialAugmentWide" else (size,)
        given = transform._augmentation_space(bins, *sized)
        return {name: (found.tolist() if found.ndim else None, signed) for name, (found, signed) in given.items()}
    whole = getattr(transform, "all_ops", True)
    functions = transform._AUGMENTATION_SPACE if whole else transform._PARTIAL_AUGMENTATION_SPACE
    made = {}
    for name, (of_bins, signed) in functions.items():
        found = of_bins(bins, *size)
        made[name] = (None if found is None else found.tolist(), signed)
    return made


def signed_magnitudes(builder: Builder, magnitudes: list[float], signed: bool, bin: int | None) -> list[float]:
    """Returns the equally probable magnitudes with their signs, of magnitude number `bin` or of all (None)."""
    chosen = magnitudes if bin is None else magnitudes[bin:][:1] if -len(magnitudes) <= bin else []
    if not chosen:
        builder.refuse(f"has no magnitude number {bin or 0}: there are {len(magnitudes)}")
    ways = []
    for magnitude in chosen:
        ways += [-magnitude, magnitude] if signed else [magnitude]
    return ways


class Operations:
    """Lowers the operations of a policy.

    Args:
        builder: refuses the transform where an operation has no native twin.
        transform: headrace's or torchvision's object.
        library: the library of its class.
        bins: number of magnitudes that each operation must have.
    """

    def __init__(self, builder: Builder, transform: Any, library: str, bins: int) -> None:
        self._builder = builder
        self._library = library
        self._transform = transform
        self._bins = bins
        sizes = _ANY_SIZES if builder.size is None else (builder.size,)
        self._spaces = [magnitudes_of_policy(transform, library, bins, size) for size in sizes]
        self._filter = filter_name(transform.interpolation)
        fill = transform.fill
        if library != "v1":
            fill = transform._fill.get(Image.Image, transform._fill.get("others"))
        self._fill = functional_pil.fill_color(fill, builder.channels)

    @property
    def names(self) -> Sequence[str]:
        """The operations, in the policy's order."""
        return tuple(self._spaces[0])

    def lower(self, name: str, bin: int | None) -> list[Steps]:
        """Returns what an operation can do: one entry for each of its equally probable magnitudes and signs.

        Args:
            name: its name.
            bin: number of its magnitude; None: all of them, if it has magnitudes.
        """
        found, signed = self._spaces[0][name]
        if found is None:
            return [self._steps_of_operation(name, 0.0)]
        if any(space[name][0] != found for space in self._spaces):
            self._builder.refuse(
                f"{name} moves an image by a share of its size, and the size of the image is not known here; put it "
                "after RandomResizedCrop, Resize((height, width)) or CenterCrop"
            )
        return [self._steps_of_operation(name, way) for way in signed_magnitudes(self._builder, found, signed, bin)]

    def _steps_of_operation(self, name: str, magnitude: float) -> Steps:
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _FACTORS:
            gray = self._builder.channels == 1 and name == "Color"
            return () if gray else (_FACTORS[name](S.Constant(1.0 + magnitude)),)
        if name == "Posterize":
            return (make_posterize(int(magnitude)),)
        if name == "Solarize":  # v2's magnitudes are shares of the largest value
            return (S.Solarize(magnitude if self._library == "v1" else 255.0 * magnitude),)
        matrix = affine_matrix(name, magnitude)
        if matrix is None and name != "Rotate":
            self._builder.refuse(f"has an operation {name} that has no native twin")
        if self._filter not in WARPS:
            self._builder.refuse(f"moves pixels with the filter {self._filter}, which Pillow supports for resizes only")
        if matrix is not None:
            return (S.Affine(matrix, self._filter, self._fill),)
        return (S.Rotate(magnitude, self._filter, self._fill),)


def choose_any_branch(branches: Sequence[Steps], draw: int) -> S.OneOf:
    """Returns a choice of branches with equal shares, by column `draw`."""
    count = len(branches)
    return S.OneOf(tuple(branches), tuple((i + 1) / count for i in range(count)), draw)


def choose_any_way(ways: Sequence[Steps], draw: int) -> Steps:
    """Returns the only way, or a choice of the ways."""
    return ways[0] if len(ways) == 1 else (choose_any_branch(ways, draw),)
