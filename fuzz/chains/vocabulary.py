"""Draws one transform with random arguments, as source text."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

ALL = ("H", "v1", "v2")
NEW = ("H", "v2")  # headrace has torchvision v2's classes
WARPS = ("nearest", "bilinear", "bicubic")
FILTERS = (*WARPS, "box", "hamming", "lanczos")


class Words:
    """Draws transforms.

    Args:
        draw: the random generator.
        channels: of the images: 1 or 3; a fill has as many numbers.
    """

    def __init__(self, draw: random.Random, channels: int) -> None:
        self.draw, self.channels = draw, channels

    def of(self, *kinds: Sequence[Callable[[Words], str]]) -> str:
        """One of the transforms of one of these kinds."""
        return self.draw.choice(self.draw.choice(kinds))(self)

    def edge(self) -> int:
        return self.draw.choice([self.draw.randint(1, 9), self.draw.randint(8, 48), self.draw.randint(20, 64)])

    def size(self) -> str:
        return f"({self.edge()}, {self.edge()})"

    def number(self, low: float, high: float) -> float:
        return self.draw.choice([round(self.draw.uniform(low, high), 3)] * 4 + [low, high])

    def bounds(self, low: float, high: float) -> str:
        return str(tuple(sorted((self.number(low, high), self.number(low, high)))))

    def p(self) -> float:
        return self.draw.choice([0.3, 0.5, 0.9, 1.0, 1.0])

    def home(self, homes: Sequence[str] = ALL) -> str:
        return self.draw.choice(homes)

    def filter(self, home: str, filters: Sequence[str] = FILTERS) -> str:
        return f"{home}.InterpolationMode('{self.draw.choice(filters)}')"

    def fill(self, none: bool = False) -> str:
        one = self.draw.randint(0, 255)
        colour = tuple(self.draw.randint(0, 255) for _ in range(self.channels))
        return str(self.draw.choice([0, one, one, colour, list(colour), *([None] if none else [])]))


def _sizing_crop(w: Words) -> str:
    home = w.home()
    ratio = w.draw.choice(["", ", ratio=(0.3, 3.0)", ", ratio=(1.0, 1.0)"])
    return f"{home}.RandomResizedCrop({w.size()}, {w.bounds(0.05, 1.2)}{ratio}, interpolation={w.filter(home)})"


def _resize(w: Words) -> str:
    home = w.home()
    return f"{home}.Resize({w.size()}, {w.filter(home)})"


def _random_crop(w: Words) -> str:
    home, padding = w.home(), w.draw.choice(["constant", "constant", "edge", "reflect", "symmetric"])
    given = w.draw.choice([None, None, 2, (1, 4), (1, 2, 3, 4)])
    mode = f"padding_mode='{padding}', fill={w.fill()}"
    return f"{home}.RandomCrop({w.size()}, {given}, {w.draw.random() < 0.9}, {mode})"


def _timm_crop(w: Words) -> str:
    return f"timm.RandomResizedCropAndInterpolation({w.size()}, interpolation='{w.draw.choice(('random', *FILTERS))}')"


#: Make images of one size.
SIZING: tuple[Callable[[Words], str], ...] = (
    _sizing_crop,
    _sizing_crop,
    _resize,
    _random_crop,
    lambda w: f"{w.home()}.CenterCrop({w.size()})",
    lambda w: f"H.ResizedCenterCrop({w.size()}, '{w.draw.choice(FILTERS)}')",
    _timm_crop,
    lambda w: f"timm.CenterCropOrPad({w.size()}, fill={w.draw.randint(0, 255)})",
    lambda w: f"timm.CenterCropOrPad({w.size()}, padding_mode={w.draw.choice(['edge', 'reflect', 'symmetric'])!r})",
    lambda w: f"timm.RandomCropOrPad({w.size()}, fill={w.draw.randint(0, 255)})",
)


def _shorter(w: Words) -> str:
    home = w.home()
    return f"{home}.Resize({w.edge()}, {w.filter(home)}, max_size={w.draw.choice([None, None, 80])})"


def _pad(w: Words) -> str:
    mode = w.draw.choice(["constant", "constant", "edge", "reflect", "symmetric"])
    given = w.draw.choice([1, 3, (2, 1), (1, 2, 3, 4), (0, 0, 5, 0)])
    return f"{w.home()}.Pad({given}, {w.fill()}, '{mode}')"


def _random_resize(w: Words) -> str:
    home, (low, high) = w.home(NEW), sorted((w.edge(), w.edge()))
    return f"{home}.RandomResize({low}, {high + 1}, interpolation={w.filter(home)})"


def _random_shortest(w: Words) -> str:
    home = w.home(NEW)
    more = f"max_size={w.draw.choice([None, 60])}, interpolation={w.filter(home)}"
    return f"{home}.RandomShortestSize([{w.edge()}, {w.edge()}, {w.edge()}], {more})"


def _scale_jitter(w: Words) -> str:
    home = w.home(NEW)
    return f"{home}.ScaleJitter({w.size()}, {w.bounds(0.3, 1.5)}, interpolation={w.filter(home)})"


def _zoom_out(w: Words) -> str:
    return f"{w.home(NEW)}.RandomZoomOut({w.fill()}, {w.bounds(1.0, 2.0)}, {w.p()})"


#: Change the size, to one that depends on the image.
RESHAPING: tuple[Callable[[Words], str], ...] = (
    _shorter,
    _pad,
    lambda w: f"timm.ResizeKeepRatio({w.size()}, {round(w.draw.random(), 2)}, interpolation='bicubic')",
    lambda w: f"timm.ResizeKeepRatio({w.size()}, random_scale_prob=0.5, random_aspect_prob=0.5)",
    lambda w: f"v2.Compose([v2.Resize({w.edge() + 7}), timm.transforms.TrimBorder({w.draw.randint(0, 3)})])",
    lambda w: f"timm.RandomPad({w.size()}, {w.draw.randint(0, 255)})",
    lambda w: _rotation(w, expand=True),
    _random_resize,
    _random_shortest,
    _scale_jitter,
    _zoom_out,
    lambda w: f"H.ResizeToPatches({w.draw.choice([4, 9])}, {w.draw.choice([20, 60])}, 2, {w.draw.choice(FILTERS)!r})",
)

FLIPS: tuple[Callable[[Words], str], ...] = (
    lambda w: f"{w.home()}.RandomHorizontalFlip({w.p()})",
    lambda w: f"{w.home()}.RandomVerticalFlip({w.p()})",
)


def _rotation(w: Words, expand: bool = False) -> str:
    home = w.home()
    degrees = w.draw.choice([w.draw.randint(0, 180), w.bounds(-400, 400), (90, 90), (180, 180), (-90, -90), (0, 0)])
    center = w.draw.choice([None, None, (w.draw.randint(-5, 50), w.number(0, 40))])
    more = f"expand={expand}, center={None if expand else center}, fill={w.fill()}"
    return f"{home}.RandomRotation({degrees}, {w.filter(home, WARPS)}, {more})"


def _affine(w: Words) -> str:
    home = w.home()
    degrees = w.draw.choice([0, 15, w.bounds(-180, 180)])
    translate = w.draw.choice([None, (0.1, 0.3), w.bounds(0, 1)])
    scale = w.draw.choice([None, (0.8, 1.2), w.bounds(0.1, 4)])
    shear = w.draw.choice([None, 10, w.bounds(-60, 60), (-5, 30, -10, 5)])
    center = w.draw.choice([None, None, (w.draw.randint(-5, 50), w.number(0, 40))])
    more = f"{w.filter(home, WARPS)}, {w.fill()}, {center}"
    return f"{home}.RandomAffine({degrees}, {translate}, {scale}, {shear}, {more})"


WARPING: tuple[Callable[[Words], str], ...] = (_rotation, _affine)


def _perspective(w: Words) -> str:
    home = w.home()
    return f"{home}.RandomPerspective({w.number(0, 1)}, {w.p()}, {w.filter(home, WARPS)}, {w.fill()})"


def _rand_augment(w: Words) -> str:
    home, bins = w.home(), w.draw.choice([31, 31, 10, 7])
    magnitude = w.draw.randint(0, bins - 1)
    more = f"{w.filter(home, WARPS)}, {w.fill(none=True)}"
    return f"{home}.RandAugment({w.draw.choice([1, 2, 2, 3])}, {magnitude}, {bins}, {more})"


def _learned(w: Words, policy: str | None = None) -> str:
    home = w.home()
    policy = policy or w.draw.choice(["CIFAR10", "SVHN", "IMAGENET"])
    return f"{home}.AutoAugment({home}.AutoAugmentPolicy['{policy}'], {w.filter(home, WARPS)}, {w.fill(none=True)})"


def _aug_mix(w: Words) -> str:
    home, all_ops = w.home(("v1", "v2")), w.draw.random() < 0.5
    chains = f"{w.draw.randint(1, 10)}, {w.draw.randint(1, 4)}, {w.draw.choice([-1, 1, 2])}, {w.number(0.3, 2.0)}"
    return f"{home}.AugMix({chains}, {all_ops}, {w.filter(home, ('nearest', 'bilinear'))}, {w.fill(none=True)})"


def _timms_policy(w: Words) -> str:
    if w.draw.random() < 0.1:
        return "timm.auto_augment_transform('originalr')"
    magnitude, more = w.draw.randint(0, 10), w.draw.choice(["", "-inc1", "-p0.7"])
    constants = f"{{'translate_const': {w.draw.randint(1, 30)}, 'img_mean': {(124, 116, 104)[: w.channels]}}}"
    if w.draw.random() < 0.3:
        depth, blended = w.draw.choice(["", "-d1", "-d3"]), w.draw.choice(["", "-b1"])
        text = f"augmix-m{magnitude}-w{w.draw.randint(1, 4)}{depth}{blended}"
        return f"timm.auto_augment.augment_and_mix_transform('{text}', {constants})"
    text = f"rand-m{magnitude}-n{w.draw.randint(1, 3)}{more}"
    return f"timm.rand_augment_transform('{text}', {constants})"


#: Need images of one size.
OF_ONE_SIZE: tuple[Callable[[Words], str], ...] = (
    _perspective,
    _perspective,
    _rand_augment,
    _learned,
    _timms_policy,
    _aug_mix,
)


def _trivial(w: Words) -> str:
    home = w.home()
    bins = w.draw.choice([31, 31, 5, 2])
    return f"{home}.TrivialAugmentWide({bins}, {w.filter(home, WARPS)}, {w.fill(none=True)})"


POLICIES: tuple[Callable[[Words], str], ...] = (_trivial, _trivial, lambda w: _learned(w, "IMAGENET"))


def _jitter(w: Words) -> str:
    factors = [w.draw.choice([0, w.number(0, 1), w.bounds(0, 3)]) for _ in range(3)]
    return f"{w.home()}.ColorJitter({', '.join(map(str, factors))}, {w.draw.choice([0, 0.1, 0.5, (-0.2, -0.1)])})"


def _distort(w: Words) -> str:
    ranges = ", ".join([w.bounds(0, 2), w.bounds(0, 2.5), w.bounds(0, 2), w.bounds(-0.5, 0.5)])
    return f"{w.home(NEW)}.RandomPhotometricDistort({ranges}, {w.p()})"


def _blur(w: Words) -> str:
    return f"{w.home()}.GaussianBlur({w.draw.choice([1, 3, (5, 3), 9])}, {w.bounds(0.1, 3)})"


VALUES: tuple[Callable[[Words], str], ...] = (
    _jitter,
    _jitter,
    _distort,
    _blur,
    lambda w: f"{w.home()}.RandomInvert({w.p()})",
    lambda w: f"{w.home()}.RandomPosterize({w.draw.randint(1, 8)}, {w.p()})",
    lambda w: f"{w.home()}.RandomSolarize({w.number(0, 256)}, {w.p()})",
    lambda w: f"{w.home()}.RandomAutocontrast({w.p()})",
    lambda w: f"{w.home()}.RandomEqualize({w.p()})",
    lambda w: f"{w.home()}.RandomAdjustSharpness({w.number(0, 4)}, {w.p()})",
    lambda w: f"{w.home()}.RandomGrayscale({w.p()})",
    lambda w: f"{w.home()}.Grayscale({w.channels})",
    lambda w: f"{w.home(NEW)}.RandomChannelPermutation()",
)


def _mean(w: Words) -> str:
    return f"[{', '.join(str(w.number(0.1, 0.9)) for _ in range(w.channels))}]"


def endings(w: Words) -> list[str]:
    """Draws the last transforms: a conversion to a tensor, and steps on tensors."""
    normalize = f"{w.home()}.Normalize({_mean(w)}, {_mean(w)})"
    dtype = f"torch.{w.draw.choice(['float32', 'float32', 'float16', 'bfloat16'])}"
    made: list[str] = w.draw.choice(
        [
            [f"{w.home(('H', 'v1'))}.ToTensor()"],
            [f"{w.home(('H', 'v1'))}.ToTensor()", normalize],
            [f"{w.home()}.PILToTensor()"],
            [f"{w.home()}.PILToTensor()", "v1.ConvertImageDtype(torch.float32)", normalize],
            ["timm.MaybePILToTensor()", f"{w.home(NEW)}.ToDtype({dtype}, scale=True)"],
            ["timm.MaybeToTensor()", normalize],
            [f"{w.home(NEW)}.ToImage()"],
            [f"{w.home(NEW)}.ToImage()", f"{w.home(NEW)}.ToPureTensor()"],
            [f"{w.home(NEW)}.ToImage()", f"{w.home(NEW)}.ToDtype(torch.float32, scale=True)", normalize],
            [f"{w.home(NEW)}.ToImage()", f"{w.home(NEW)}.ToDtype({dtype}, scale={w.draw.random() < 0.8})"],
        ]
    )
    if w.draw.random() < 0.35:
        value = w.draw.choice([0, 1, w.draw.randint(0, 255), [1.0] * w.channels])
        scale = w.draw.choice(["", ", (0.1, 0.9)"])
        made.append(f"{w.home()}.RandomErasing({w.p()}{scale}, value={value})")
    elif w.draw.random() < 0.06:
        made.append(f"timm.random_erasing.RandomErasing({w.p()}, device='cpu')")
    if w.draw.random() < 0.2:
        made.append(w.of(FLIPS))
    return made


_COLOURS_OF_TENSORS = [
    *("RandomAdjustSharpness(1.7)", "RandomAdjustSharpness(0.2)", "RandomPosterize(0)", "RandomPosterize(3)"),
    *("RandomSolarize(127.5)", "RandomGrayscale(0.6)", "RandomInvert()", "RandomAutocontrast()", "RandomEqualize()"),
    *("ColorJitter(0.4, 0.4, 0.4, 0.1)", "ColorJitter(0.5, 0, (0.2, 1.9), 0.5)"),
]


def on_bytes(w: Words) -> list[str]:
    """Draws transforms in the order of tensors: a conversion, then geometry and colours by torch's arithmetic.

    v2 resizes in bytes, v1 in floats.
    """
    home, first, last = w.draw.choice(
        [
            ("v2", "ToImage()", "ToDtype(torch.float32, scale=True)"),
            ("v1", "PILToTensor()", "ConvertImageDtype(torch.float32)"),
        ]
    )
    made = [f"{home}.{first}"]
    smooth = partial(w.filter, home, ("bilinear", "bicubic"))
    choices: list[Any] = [
        lambda: f"{home}.Resize({w.size()}, {smooth()})",
        lambda: f"{home}.RandomResizedCrop({w.size()}, {w.bounds(0.1, 1)}, interpolation={smooth()})",
        lambda: f"{home}.CenterCrop({w.size()})",
        lambda: w.of(FLIPS),
    ]
    if home == "v2":
        choices += [
            lambda: f"v2.RandomCrop({w.size()}, {w.draw.choice([None, 2])}, True, padding_mode='edge')",
            lambda: f"v2.Pad({w.draw.randint(0, 4)}, {w.draw.randint(0, 255)})",
        ]
    made += [w.draw.choice(choices)() for _ in range(w.draw.randint(1, 3))]
    made.append(f"{home}.CenterCrop({w.size()})")
    if w.draw.random() < 0.5:
        colours = [f"{home}.{one}" for one in _COLOURS_OF_TENSORS]
        made += w.draw.sample([*colours, "v2.RandomPhotometricDistort()"], w.draw.randint(1, 3))
    if w.draw.random() < 0.6:
        made.append(f"{home}.{last}")
    return made
