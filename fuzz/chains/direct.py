"""A chain by torchvision itself: its own functions and kernels, called with the parameters of a sample's draws.

No random generator is replaced: each transform's parameters are computed here from the columns that its steps name, by
torchvision's published algorithm, and handed to `transform.transform` (v2) or to the functions of v1.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

import headrace._recipe.steps.steps as S
from fuzz.chains.policies import aug_mix, policy
from headrace._lowering import _lower_transform
from headrace._lowering.builder import Builder
from headrace._lowering.transform_library import leaf_transforms

Draws = Sequence[float]
Steps = Sequence[Any]  # of the kinds that the transform becomes


class NotDirect(Exception):
    """A transform whose parameters cannot be handed over."""


class Direct:
    """torchvision's result of a chain, for the draws of a sample.

    Args:
        transform: the chain, of torchvision's transforms.
        channels, size: those of the images, as `lower` takes them.
        mode: mode of the images.
    """

    def __init__(self, transform: Any, channels: int, size: tuple[int, int] | None, mode: str) -> None:
        self._steps: dict[int, Steps] = {}
        self._leaves = list(leaf_transforms(transform))
        self._builder = Builder(self._record, channels, size)
        self._builder.lower(self._leaves)
        self._kept = transform  # the ids of its parts are keys

    @property
    def columns(self) -> list[Any]:
        """The columns of its draws."""
        return self._builder.columns

    def _record(self, builder: Builder, transform: Any) -> None:
        before = len(builder.steps)
        _lower_transform(builder, transform)
        self._steps[id(transform)] = builder.steps[before:]

    def __call__(self, image: Any, draws: Draws) -> torch.Tensor:
        """Returns the finished tensor. Raises NotDirect, or torchvision's errors."""
        made: torch.Tensor = self._all(self._leaves, image, draws)
        return made.as_subclass(torch.Tensor)

    def _all(self, transforms: Sequence[Any], image: Any, draws: Draws) -> Any:
        for transform in transforms:
            for leaf in leaf_transforms(transform):
                image = self._one(leaf, image, draws)
        return image

    def _one(self, transform: Any, image: Any, draws: Draws) -> Any:
        steps, name = self._steps[id(transform)], type(transform).__name__
        if name in _AS_THEY_ARE and not any(isinstance(step, S.RandomKeepRatio) for step in steps):
            return transform(image)
        if not steps:  # nothing happens to such an image
            return image
        if name in _AT_TIMES:
            always = copy.copy(transform)
            always.p = 1.0
            return always(image) if draws[steps[0].draw] < transform.p else image
        if name == "RandomApply":
            return self._all(transform.transforms, image, draws) if draws[steps[0].draw] < transform.p else image
        if name == "RandomChoice":
            weights = transform.p or [1.0] * len(transform.transforms)
            u, sums = draws[steps[0].draw] * sum(weights), list(itertools.accumulate(weights))
            return self._all([transform.transforms[next(i for i, top in enumerate(sums) if u < top)]], image, draws)
        if name == "RandomOrder":
            parts = [one for one in transform.transforms if any(self._steps[id(leaf)] for leaf in leaf_transforms(one))]
            return self._all([parts[i] for i in _order(steps, len(parts), draws)], image, draws)
        if name not in _PARAMETERS or type(transform).__module__.startswith("timm."):
            raise NotDirect(name)
        return _PARAMETERS[name](transform, steps, image, draws)


_AS_THEY_ARE = {"Resize", "CenterCrop", "Pad", "Grayscale", "RGB", "ToTensor", "PILToTensor", "ToImage", "ToPureTensor"}
_AS_THEY_ARE |= {"ToDtype", "ConvertImageDtype", "Normalize", "Identity", "CenterCropOrPad", "ResizeKeepRatio"}
_AS_THEY_ARE |= {"MaybePILToTensor", "MaybeToTensor", "TrimBorder"}
_AT_TIMES = {f"Random{name}" for name in ("Invert", "Posterize", "Solarize", "Autocontrast", "Equalize")}
_AT_TIMES |= {"RandomAdjustSharpness", "RandomGrayscale", "RandomHorizontalFlip", "RandomVerticalFlip"}


def _order(steps: Steps, count: int, draws: Draws) -> list[int]:
    if not isinstance(steps[0], S.Shuffled):
        return list(range(count))
    every = math.factorial(count)
    return list(next(itertools.islice(itertools.permutations(range(count)), int(draws[steps[0].draw] * every), None)))


def _is_v2(transform: Any) -> bool:
    return ".v2" in type(transform).__module__


def _functions() -> Any:
    import torchvision.transforms.functional as functions

    return functions


def _newer_functions() -> Any:
    import torchvision.transforms.v2.functional as functions

    return functions


def _size(image: Any) -> tuple[int, int]:
    return (image.shape[-2], image.shape[-1]) if isinstance(image, torch.Tensor) else (image.height, image.width)


def _resized_crop(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    (height, width), first = _size(image), steps[0].draw
    down, right = draws[first + 20 : first + 22]
    for area, ratio in zip(draws[first : first + 20 : 2], draws[first + 1 : first + 20 : 2], strict=True):
        w, h = round(math.sqrt(height * width * area * ratio)), round(math.sqrt(height * width * area / ratio))
        if 0 < w <= width and 0 < h <= height:
            box = int(down * (height - h + 1)), int(right * (width - w + 1)), h, w
            break
    else:
        low, high = min(transform.ratio), max(transform.ratio)
        w, h = width, height
        if width / height < low:
            h = round(w / low)
        elif width / height > high:
            w = round(h * high)
        box = (height - h) // 2, (width - w) // 2, h, w
    if _is_v2(transform):
        return transform.transform(image, dict(zip(("top", "left", "height", "width"), box, strict=True)))
    return _functions().resized_crop(image, *box, transform.size, transform.interpolation, antialias=True)


def _crop(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    down, right = draws[steps[0].draw : steps[0].draw + 2]
    if _is_v2(transform):
        return _crop_of_v2(transform, image, down, right)
    F, (height, width) = _functions(), transform.size

    def padded(image: Any, padding: Any) -> Any:
        return F.pad(image, padding, transform.fill, transform.padding_mode)

    if transform.padding is not None:
        image = padded(image, transform.padding)
    if transform.pad_if_needed and image.width < width:
        image = padded(image, [width - image.width, 0])
    if transform.pad_if_needed and image.height < height:
        image = padded(image, [0, height - image.height])
    top, left = int(down * (image.height - height + 1)), int(right * (image.width - width + 1))
    if image.height < height or image.width < width:
        raise ValueError("the image is too small")
    return F.crop(image, top, left, height, width)


def _crop_of_v2(transform: Any, image: Any, down: float, right: float) -> Any:
    """v2 pads once; its attribute holds left, right, top, bottom."""
    (image_height, image_width), (height, width) = _size(image), transform.size
    before_x, after_x, before_y, after_y = transform.padding or (0, 0, 0, 0)
    more_x = max(width - (image_width + before_x + after_x), 0) if transform.pad_if_needed else 0
    more_y = max(height - (image_height + before_y + after_y), 0) if transform.pad_if_needed else 0
    padding = [before_x + more_x, before_y + more_y, after_x + more_x, after_y + more_y]
    free_y = image_height + padding[1] + padding[3] - height
    free_x = image_width + padding[0] + padding[2] - width
    if min(free_x, free_y) < 0:
        raise ValueError("the image is too small")
    place = {"top": int(down * (free_y + 1)), "left": int(right * (free_x + 1)), "height": height, "width": width}
    return transform.transform(image, {"needs_crop": True, "needs_pad": any(padding), "padding": padding, **place})


def _jitter(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    done = [branch[0] for branch in steps[0].branches] if isinstance(steps[0], S.Shuffled) else list(steps)
    for one in [done[i] for i in _order(steps, len(done), draws)]:
        name = type(one).__name__.removeprefix("Tensor").lower()
        functions = _newer_functions() if isinstance(image, torch.Tensor) and _is_v2(transform) else _functions()
        image = getattr(functions, f"adjust_{name}")(image, draws[_column(one)])
    return image


def _column(one: Any) -> int:
    """The column of a factor; that of a step on byte tensors is a Drawn."""
    column: int = one.factor.column if hasattr(one, "factor") else one.draw
    return column


def _distort(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    first = steps[0].draw
    gray = (len(image) if isinstance(image, torch.Tensor) else len(image.getbands())) == 1
    names = ("brightness", "contrast", "saturation", "hue")
    values: dict[str, Any] = {
        f"{name}_factor": draws[first + 2 * k + 1] if draws[first + 2 * k] < transform.p else None
        for k, name in enumerate(names)
    }
    values["contrast_before"] = draws[first + 8] < 0.5
    permuted = not gray and draws[first + 10] < transform.p
    values["channel_permutation"] = _permutation(draws[first + 9]) if permuted else None
    return transform.transform(image, values)


def _permutation(u: float) -> list[int]:
    return list(list(itertools.permutations(range(3)))[int(u * 6)])


def _blur(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    sigma = draws[steps[0].draw]
    if _is_v2(transform):
        return transform.transform(image, {"sigma": [sigma, sigma]})
    return _functions().gaussian_blur(image, transform.kernel_size, [sigma, sigma])


def _rotation(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    angle = draws[steps[0].draw]
    if _is_v2(transform):
        return transform.transform(image, {"angle": angle})
    F = _functions()
    return F.rotate(image, angle, transform.interpolation, transform.expand, transform.center, transform.fill)


def _affine(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    angle, x, y, scale, *shear = draws[steps[0].draw : steps[0].draw + 6]
    translate = [round(x * image.width), round(y * image.height)]
    if _is_v2(transform):
        return transform.transform(image, {"angle": angle, "translate": translate, "scale": scale, "shear": shear})
    rest = {"interpolation": transform.interpolation, "fill": transform.fill, "center": transform.center}
    return _functions().affine(image, angle, translate, scale, shear, **rest)


def _perspective(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    when = steps[0]
    if draws[when.draw] >= transform.p:
        return image
    numbers, (height, width) = iter(draws[when.steps[0].draw :]), _size(image)
    x, y = int(transform.distortion_scale * (width // 2)), int(transform.distortion_scale * (height // 2))

    def between(low: int, high: int) -> int:
        return low + int(next(numbers) * (high - low))

    def corner(right: bool, below: bool) -> list[int]:
        across = between(width - x - 1, width) if right else between(0, x + 1)
        return [across, between(height - y - 1, height) if below else between(0, y + 1)]

    end = [corner(False, False), corner(True, False), corner(True, True), corner(False, True)]
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    if _is_v2(transform):
        return transform.transform(image, {"coefficients": _functions()._get_perspective_coeffs(start, end)})
    return _functions().perspective(image, start, end, transform.interpolation, transform.fill)


def _erasing(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    first = steps[0].draw
    if draws[first] >= transform.p:
        return image
    height, width = _size(image)
    for area, ratio in zip(draws[first + 1 : first + 21 : 2], draws[first + 2 : first + 21 : 2], strict=True):
        h, w = round(math.sqrt(height * width * area * ratio)), round(math.sqrt(height * width * area / ratio))
        if h < height and w < width:
            i, j = int(draws[first + 21] * (height - h + 1)), int(draws[first + 22] * (width - w + 1))
            value = transform.value if isinstance(transform.value, (list, tuple)) else [float(transform.value)]
            v = torch.tensor(value)[:, None, None]
            if _is_v2(transform):
                return transform.transform(image, {"i": i, "j": j, "h": h, "w": w, "v": v})
            return _functions().erase(image, i, j, h, w, v, False)
    return image


def _channels(transform: Any, steps: Steps, image: Any, draws: Draws) -> Any:
    return transform.transform(image, {"permutation": _permutation(draws[steps[0].draw])})


_PARAMETERS: dict[str, Callable[[Any, Steps, Any, Draws], Any]] = {
    "AutoAugment": policy,
    "ColorJitter": _jitter,
    "GaussianBlur": _blur,
    "AugMix": aug_mix,
    "RandAugment": policy,
    "RandomAffine": _affine,
    "RandomChannelPermutation": _channels,
    "RandomCrop": _crop,
    "RandomErasing": _erasing,
    "RandomPerspective": _perspective,
    "RandomPhotometricDistort": _distort,
    "RandomResizedCrop": _resized_crop,
    "RandomRotation": _rotation,
    "TrivialAugmentWide": policy,
}
