"""Random chains of functions on deferred tensors and on real ones: all that a program can see must be equal."""

from __future__ import annotations

import functools
import random
import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import InterpolationMode, v2  # noqa: E402
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

Step = tuple[str, Callable[[Any], Any]]

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
FILTERS = [
    InterpolationMode.BILINEAR,
    InterpolationMode.BICUBIC,
    InterpolationMode.NEAREST,
    InterpolationMode.NEAREST_EXACT,
]


def make_step(draw: random.Random) -> Step:
    """A function of an image tensor, and how it is written. Some raise errors for some tensors."""
    integer = draw.randint
    top, left, height, width = integer(-3, 20), integer(-3, 20), integer(1, 60), integer(1, 60)
    size = [integer(1, 70), integer(1, 70)]
    filter, antialias = draw.choice([*FILTERS, FILTERS[0], FILTERS[0]]), draw.choice([True, True, True, False, None])
    dim, number = draw.choice([-1, -2, -3, 1, 2]), draw.choice([255, 255.0, 2, 0.5, 0, -1, True])
    padding, fill = (
        draw.choice([1, [2, 3], [0, 1, 2, 3], [0, 0, 0, 0], [40] * 4, [-1]]),
        draw.choice([0, 7, 255, 0.5, None, [1, 2, 3], [9]]),
    )
    padding_mode, dtype = (
        draw.choice(["constant", "constant", "edge", "reflect", "symmetric"]),
        draw.choice(
            [torch.float32, torch.float32, torch.uint8, torch.float16, torch.float64, torch.int32, torch.bfloat16]
        ),
    )
    scale, inplace, seed = draw.random() < 0.6, draw.random() < 0.2, integer(0, 9)
    per_channel = torch.tensor([0.25, 0.5, 1.5]).view(3, 1, 1)

    def seeded(transform: Any) -> Callable[[Any], Any]:
        def call(image: Any) -> Any:
            torch.manual_seed(seed)
            return transform(image)

        return call

    steps: list[Step] = [
        (f"f2.crop{top, left, height, width}", lambda t: f2.crop(t, top, left, height, width)),
        (f"v1.crop{top, left, height, width}", lambda t: v1.crop(t, top, left, height, width)),
        (f"[..., {top}:{height}, {left}:{width}]", lambda t: t[..., top:height, left:width]),
        (f"[:, {top}:]", lambda t: t[:, top:]),
        ("[0:1]", lambda t: t[0:1]),
        ("[0]", lambda t: t[0]),
        (f"f2.resize({size}, {filter}, {antialias})", lambda t: f2.resize(t, size, filter, antialias=antialias)),
        (f"v1.resize({size}, {filter}, {antialias})", lambda t: v1.resize(t, size, filter, antialias=antialias)),
        (f"f2.resize({size[0]})", lambda t: f2.resize(t, size[0])),
        (f"v1.resize({size[:1]})", lambda t: v1.resize(t, size[:1])),
        (
            f"f2.resized_crop{top, left, height, width, size}",
            lambda t: f2.resized_crop(t, top, left, height, width, size),
        ),
        (f"f2.center_crop({size})", lambda t: f2.center_crop(t, size)),
        (f"v1.center_crop({size})", lambda t: v1.center_crop(t, size)),
        ("f2.hflip", lambda t: f2.horizontal_flip(t)),
        ("v1.vflip", lambda t: v1.vflip(t)),
        (f"flip({dim})", lambda t: t.flip(dim)),
        (
            f"f2.pad({padding}, {fill}, {padding_mode})",
            lambda t: f2.pad(t, padding, fill=fill, padding_mode=padding_mode),
        ),
        (
            f"v1.pad({padding}, {fill}, {padding_mode})",
            lambda t: v1.pad(t, padding, fill=fill, padding_mode=padding_mode),
        ),
        (f"f2.to_dtype({dtype}, {scale})", lambda t: f2.to_dtype(t, dtype, scale=scale)),
        ("f2.to_dtype(float32, True)", lambda t: f2.to_dtype(t, torch.float32, scale=True)),
        (f"v1.convert_image_dtype({dtype})", lambda t: v1.convert_image_dtype(t, dtype)),
        (f"f2.normalize({inplace})", lambda t: f2.normalize(t, MEAN, STD, inplace=inplace)),
        (f"v1.normalize({inplace})", lambda t: v1.normalize(t, MEAN, STD, inplace=inplace)),
        (".float()", lambda t: t.float()),
        (f".to({dtype})", lambda t: t.to(dtype)),
        (f"/ {number}", lambda t: t / number),
        (f"{number} * t", lambda t: number * t),
        (f"- {number}", lambda t: t - number),
        (f"{number} - t", lambda t: number - t),
        ("* per channel", lambda t: t * per_channel),
        ("t + t", lambda t: t + t),
        (f".mul_({number})", lambda t: t.mul_(number)),
        (".contiguous()", lambda t: t.contiguous()),
        (".permute", lambda t: t.permute(1, 2, 0)),
        (".unsqueeze(0)", lambda t: t.unsqueeze(0)),
        (".clone()", lambda t: t.clone()),
        ("as_tensor", lambda t: torch.as_tensor(t)),
        ("tv Image", lambda t: tv_tensors.Image(t)),
        ("as plain", lambda t: t.as_subclass(torch.Tensor)),
        ("requires grad", lambda t: t.requires_grad_(t.is_floating_point())),
        *make_colour_steps(draw),
        *make_geometry_steps(draw),
        ("f2.erase", lambda t: f2.erase(t, 1, 2, 3, 4, torch.zeros(1, dtype=t.dtype), inplace=inplace)),
        (f"v1.erase{top, left}", lambda t: v1.erase(t, top, left, 3, 4, torch.ones(t.shape[-3], 1, 1), inplace)),
        ("v2.RandomErasing", seeded(v2.RandomErasing(0.9, value="random"))),
        ("v2.RandomResizedCrop", seeded(v2.RandomResizedCrop(20, antialias=True))),
        ("v2.RandomHorizontalFlip", seeded(v2.RandomHorizontalFlip(0.5))),
        ("v2.ColorJitter", seeded(v2.ColorJitter(0.4, 0.4, 0.4))),
        ("v2.RandAugment", seeded(v2.RandAugment())),
        ("v2.RandomAffine", seeded(v2.RandomAffine(20, (0.1, 0.2), (0.7, 1.3), 9, fill=draw.choice([0, 9])))),
        ("v2.RandomRotation", seeded(v2.RandomRotation(40, draw.choice(FILTERS[:3:2])))),
        ("v2.RandomGrayscale", seeded(v2.RandomGrayscale(0.6))),
        ("v2.ToDtype", v2.ToDtype(dtype, scale=scale)),
        ("v2.ToPureTensor", v2.ToPureTensor()),
        ("v2.five_crop", lambda t: f2.five_crop(t, [9, 8])[3]),
        ("numpy", lambda t: torch.from_numpy(t.numpy())),
        ("zeroed part", lambda t: (t[..., 1:3, 1:3].zero_(), t)[1]),
        ("stack", lambda t: torch.stack([t, t])[1]),
        ("weakly held", _hold),
    ]
    return draw.choice(steps)


def _call(function: Callable[..., Any], value: Any, tensor: Any) -> Any:
    return function(tensor, value)


def make_colour_steps(draw: random.Random) -> list[Step]:
    """Two functions that change colours, of v1 or v2."""
    factor = draw.choice([0, 1, 0.0, 1.0, draw.uniform(0, 2), draw.uniform(0, 2), 40.0, -1, True])
    turn = draw.choice([0, 0.5, -0.5, draw.uniform(-0.5, 0.5), draw.uniform(-0.5, 0.5), 0.6])
    bits, threshold = draw.randint(0, 9), draw.choice([0, 255, 128, 99.5, draw.uniform(0, 255), 300, -1])
    order = draw.sample(range(3), 3)
    found: list[Step] = []
    for name, module in (("v1", v1), ("f2", f2)):
        found += [
            (f"{name}.{function}({value})", functools.partial(_call, getattr(module, function), value))
            for function, value in (
                ("adjust_brightness", factor),
                ("adjust_contrast", factor),
                ("adjust_saturation", factor),
                ("adjust_sharpness", factor),
                ("adjust_hue", turn),
                ("posterize", bits),
                ("solarize", threshold),
                ("rgb_to_grayscale", draw.choice([1, 3])),
            )
        ]
        found += [
            (f"{name}.{function}", getattr(module, function)) for function in ("autocontrast", "equalize", "invert")
        ]
    found.append((f"f2.permute_channels({order})", lambda t: f2.permute_channels(t, order)))
    found.append(("v2.RandomPhotometricDistort", v2.RandomPhotometricDistort()))
    return draw.sample(found, 6)


def make_geometry_steps(draw: random.Random) -> list[Step]:
    """Functions that map an image by a matrix, v1's and v2's, resizes to the nearest pixel, and grays."""
    angle = draw.choice([0, 90, 180, 270, 360, -30, draw.uniform(-180, 180), draw.uniform(-180, 180)])
    moved, scale = [draw.randint(-9, 9), draw.choice([0, 2.5, -3])], draw.choice([1.0, draw.uniform(0.5, 2), 0])
    shear = draw.choice([[0.0, 0.0], [draw.uniform(-40, 40), draw.uniform(-40, 40)]])
    filter, expand = draw.choice([*FILTERS[:1], *FILTERS]), draw.random() < 0.2
    fill = draw.choice([None, 0, 7, 255.0, 300, [1, 2, 3], [4.5], (9.0, 8.0, 7.0)])
    center = draw.choice([None, None, [0, 0], [5, 30.5]])
    size, exact = [draw.randint(1, 70), draw.randint(1, 70)], draw.choice(FILTERS[2:])
    found: list[Step] = []
    for name, module in (("v1", v1), ("f2", f2)):

        def affine(t: Any, module: Any = module) -> Any:
            return module.affine(t, angle, moved, scale, shear, interpolation=filter, fill=fill, center=center)

        def rotate(t: Any, module: Any = module) -> Any:
            return module.rotate(t, angle, filter, expand, center, fill)

        def nearest(t: Any, module: Any = module) -> Any:
            return module.resize(t, size, exact)

        def gray(t: Any, module: Any = module) -> Any:
            return module.rgb_to_grayscale(t, 3)

        found += [
            (f"{name}.affine{angle, moved, scale, shear, filter, fill, center}", affine),
            (f"{name}.rotate{angle, filter, expand, center, fill}", rotate),
            (f"{name}.resize{size, exact}", nearest),
            (f"{name}.rgb_to_grayscale(3)", gray),
        ]
    return draw.sample(found, 4)


_held: list[Any] = []


def _hold(tensor: Any) -> Any:
    _held[:] = [weakref.ref(tensor)]
    return tensor


def see(value: Any) -> Any:
    """What a program sees of a tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach().as_subclass(torch.Tensor)
    seen = (
        value.shape,
        value.stride(),
        value.dtype,
        value.device,
        value.requires_grad,
        value.is_leaf,
        value.is_contiguous(),
    )
    return (*seen, plain.double().nan_to_num(-7).tolist())


def apply_chain(image: Any, steps: list[Step], looks: int) -> list[Any]:
    """Returns what is seen of the results of some steps, then of all, and at last the state of the generator."""
    results, alive = [image], image
    seen: list[Any] = []
    for number, (_, step) in enumerate(steps):
        try:
            alive = step(alive)
        except Exception as error:  # compared
            return [*seen, type(error), str(error), *map(see, results)]
        results.append(alive)
        if looks >> number & 1:
            seen.append(see(alive))
    return [*seen, *map(see, results), [type(one) for one in results], torch.random.get_rng_state().tolist()]
