"""Colour transforms of a PIL image, by Pillow operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image, ImageEnhance

from headrace._recipe.arithmetic import functional_pil
from headrace.transforms._base import BESIDE_IMAGES, PIL_ALONE, Params, RandomTransform, Transform, common_shape

Factor = float | Sequence[float]


def _factor_range(
    value: Factor | None, name: str, center: float = 1.0, bound: tuple[float, float] = (0, float("inf"))
) -> tuple[float, float] | None:
    """Returns (smallest, largest) factor, or None if the only possible factor changes nothing."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = center - value, center + value
        low = low if center == 0 else max(low, 0.0)
    elif isinstance(value, Sequence) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name}={value} should be a single number or a sequence with length 2.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound} and increasing, but got {[low, high]}.")
    return None if low == high == center else (float(low), float(high))


class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in a random order.

    Args:
        brightness, contrast, saturation: (smallest, largest) factor, 0 or more; or x for (max(0, 1 - x), 1 + x).
            None: no change.
        hue: (smallest, largest) rotation of the hue circle, in turns within [-0.5, 0.5]; or x for (-x, x). None: no
            change.

    Raises:
        ValueError: a bound is out of range, or the smallest exceeds the largest.
        TypeError: an argument is neither a number nor a sequence of two numbers.
    """

    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES

    def __init__(
        self,
        brightness: Factor | None = None,
        contrast: Factor | None = None,
        saturation: Factor | None = None,
        hue: Factor | None = None,
    ) -> None:
        super().__init__()
        self.brightness: tuple[float, float] | None = _factor_range(brightness, "brightness")
        self.contrast: tuple[float, float] | None = _factor_range(contrast, "contrast")
        self.saturation: tuple[float, float] | None = _factor_range(saturation, "saturation")
        self.hue: tuple[float, float] | None = _factor_range(hue, "hue", 0, (-0.5, 0.5))

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[torch.Tensor, float | None, float | None, float | None, float | None]:
        """Draws the order of the four changes and their factors as torchvision v1's static method does."""
        order = torch.randperm(4)
        return (order, *(_draw_one(bounds) for bounds in (brightness, contrast, saturation, hue)))  # type: ignore[return-value]

    def make_params(self, flat_inputs: list[object]) -> Params:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return {"order": order.tolist(), "factors": factors}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        made: Image.Image = inpt
        for i in params["order"]:
            factor = params["factors"][i]
            if factor is not None:
                made = _ADJUST[i](made, factor)
        return made


def _draw_one(bounds: Sequence[float] | None) -> float | None:
    return None if bounds is None else _draw_between(bounds)


def _draw_between(bounds: Sequence[float]) -> float:
    return torch.empty(1).uniform_(bounds[0], bounds[1]).item()


_ADJUST: tuple[Callable[[Image.Image, float], Image.Image], ...] = (
    lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    lambda image, turn: functional_pil.adjust_hue(image, turn),  # looked up at each call: deferred images replace it
)


class RandomChannelPermutation(Transform):
    """Puts the channels into a random order; each order is as likely as the others.

    Raises:
        ValueError: when called, if the sample holds images of different shapes.
        TypeError: when called on an image of mode 1 or I;16.
    """

    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"permutation": torch.randperm(common_shape(flat_inputs)[0])}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return _permute_channels(inpt, params["permutation"])


def _permute_channels(image: Image.Image, order: torch.Tensor) -> Image.Image:
    """Returns an image whose channel i is channel order[i]; its mode is the one that Pillow gives such an array."""
    values = np.asarray(image)
    if values.dtype in (np.bool_, np.uint16):  # torchvision makes no image of a tensor of this type
        raise TypeError(f"an image of mode {image.mode} has one channel, and torchvision refuses it; convert it to L")
    if values.dtype == np.float32:  # torchvision expects values up to 1 and makes bytes
        values = torch.from_numpy(values.copy()).mul(255).byte().numpy()
    return Image.fromarray(values if values.ndim == 2 else np.ascontiguousarray(values[..., order.numpy()]))


class RandomPhotometricDistort(Transform):
    """Changes brightness, contrast, saturation, hue and the order of the channels, each with probability `p`.

    Contrast is changed before saturation and hue or after them, with equal probability.

    Args:
        brightness, contrast, saturation: (smallest, largest) factor, 0 or more.
        hue: (smallest, largest) rotation of the hue circle, in turns within [-0.5, 0.5].
        p: probability of each of the five changes.

    Raises:
        ValueError: when called, if the drawn hue is out of range, or the sample holds images of different shapes.
    """

    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, flat_inputs: list[object]) -> Params:
        channels = common_shape(flat_inputs)[0]
        params: Params = {}
        for name in ("brightness", "contrast", "saturation", "hue"):
            params[f"{name}_factor"] = _draw_between(getattr(self, name)) if torch.rand(1) < self.p else None
        params["contrast_before"] = bool(torch.rand(()) < 0.5)
        params["channel_permutation"] = torch.randperm(channels) if torch.rand(1) < self.p else None
        return params

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        brightness, contrast, saturation, hue = (
            params[f"{name}_factor"] for name in ("brightness", "contrast", "saturation", "hue")
        )
        if hue is not None and not -0.5 <= hue <= 0.5:
            raise ValueError(f"hue_factor ({hue}) is not in [-0.5, 0.5].")
        before = params["contrast_before"]
        order = params["channel_permutation"]
        made: Image.Image = inpt
        for factor, adjust in (
            (brightness, _ADJUST[0]),
            (contrast if before else None, _ADJUST[1]),
            (saturation, _ADJUST[2]),
            (hue, _ADJUST[3]),
            (None if before else contrast, _ADJUST[1]),
        ):
            made = made if factor is None else adjust(made, factor)
        return made if order is None else _permute_channels(made, order)


class _Recoloured(RandomTransform):
    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES


class RandomGrayscale(_Recoloured):
    """Converts to gray (Pillow's mode L) with probability `p`, keeping the number of channels.

    Raises:
        ValueError: `p` is outside [0, 1]. When called: an image has neither 1 nor 3 channels, or the sample holds
            images of different shapes.
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"channels": common_shape(flat_inputs)[0]}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.grayscale(inpt, params["channels"])


class RandomInvert(_Recoloured):
    """Replaces every value x by 255 - x, with probability `p`."""

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.invert(inpt)


class RandomPosterize(_Recoloured):
    """Keeps the `bits` (1 to 8) most significant bits of every value, with probability `p`."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.posterize(inpt, self.bits)


class RandomSolarize(_Recoloured):
    """Replaces every value x >= `threshold` by 255 - x, with probability `p`."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.solarize(inpt, self.threshold)


class RandomAdjustSharpness(_Recoloured):
    """Sharpens or smooths, with probability `p`.

    Args:
        sharpness_factor: 0 makes a smooth image, 1 the same image, 2 one that is as much sharper as 0 is smoother.
        p: the probability.
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return ImageEnhance.Sharpness(inpt).enhance(self.sharpness_factor)


class RandomAutocontrast(_Recoloured):
    """Stretches every channel to the full range 0 to 255, with probability `p`."""

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.autocontrast(inpt)


class RandomEqualize(_Recoloured):
    """Equalizes every channel's histogram, with probability `p`."""

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.equalize(inpt)
