"""Transforms of one deferred image that are recorded together: what they make and draw is torchvision's."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.overrides import TorchFunctionMode

import headrace
from headrace.pillow import composed_images, to_tensor_patches
from headrace.pillow.composed_images import draw_box
from torchvision_shim import import_torchvision

T = import_torchvision().transforms
from torchvision.transforms import InterpolationMode, _functional_pil  # noqa: E402 - after the shim
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import transforms as module  # noqa: E402

EDGES = 90, 70


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the transforms that were recorded together."""
    counts: list[int] = []
    record = composed_images.record_steps

    def counted(*arguments: Any) -> Any:
        made = record(*arguments)
        if made is not None:
            counts.append(made[1])
        return made

    monkeypatch.setattr(to_tensor_patches, "record_steps", counted)
    return counts


@pytest.fixture
def photographs(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.jpg" for number in range(4)]
    for number, path in enumerate(paths):
        size = EDGES[number % 2] + number, EDGES[1 - number % 2]
        Image.effect_noise(size, 60).convert("L" if number == 3 else "RGB").save(path, quality=90)
    return paths


def made_by(transform: Any, opener: Any, paths: list[Path], convert: str | None = "RGB") -> list[Any]:
    """All that can be seen of what a transform makes, and of the generators after it."""
    torch.manual_seed(3)
    random.seed(3)
    made: list[Any] = []
    for path in paths * 3:
        image = opener(path)
        image.info["note"] = str(path)
        result = transform(image if convert is None else image.convert(convert))
        if isinstance(result, torch.Tensor):
            made.append((result.dtype, result.stride(), result.shape, result.tolist()))
        else:
            made.append((type(result), result.mode, result.size, result.info, result.tobytes()))
    return [*made, torch.get_rng_state().tolist(), random.getstate()]


def assert_as_torchvision(transform: Any, paths: list[Path], convert: str | None = "RGB") -> None:
    expected = made_by(transform, Image.open, paths, convert)
    with headrace.pillow.deferred():
        assert made_by(transform, headrace.pillow.open, paths, convert) == expected


#: name -> the transforms, and how many of them are recorded together first.
CHAINS: dict[str, tuple[Callable[[], list[Any]], int]] = {
    "training": (lambda: [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()], 2),
    "flip first": (lambda: [T.RandomHorizontalFlip(), T.RandomResizedCrop(32), T.ToTensor()], 2),
    "an image": (lambda: [T.RandomResizedCrop(32), T.RandomHorizontalFlip(0.9)], 2),
    "two crops": (lambda: [T.RandomResizedCrop(64), T.RandomResizedCrop((20, 31)), T.PILToTensor()], 2),
    "another step between": (lambda: [T.RandomResizedCrop(32), T.ColorJitter(0.4), T.RandomHorizontalFlip()], 1),
    "a crop alone": (lambda: [T.RandomResizedCrop(32, scale=(0.5, 1.0)), T.ToTensor()], 1),
    "the whole image": (lambda: [T.RandomResizedCrop(EDGES[::-1], (1, 1), ratio=(9 / 7, 9 / 7)), T.ToTensor()], 1),
    "no box fits": (lambda: [T.RandomResizedCrop(32, scale=(3.0, 5.0)), T.ToTensor()], 1),
    "narrow": (lambda: [T.RandomResizedCrop(32, scale=(0.9, 1.0), ratio=(4, 5)), T.ToTensor()], 1),
    "wide": (lambda: [T.RandomResizedCrop(32, scale=(0.9, 1.0), ratio=(0.1, 0.2)), T.ToTensor()], 1),
    "lists": (lambda: [T.RandomResizedCrop([24, 40], [0.1, 1], [0.5, 2]), T.ToTensor()], 1),
    "flips always": (lambda: [T.RandomHorizontalFlip(1.0), T.RandomHorizontalFlip(0.0), T.ToTensor()], 2),
    "p beyond its range": (lambda: list(map(T.RandomHorizontalFlip, (7, -1.5, math.nan, math.inf, 1e300))), 5),
    "p is almost 0": (lambda: [T.RandomHorizontalFlip(1e-300), T.RandomHorizontalFlip(2.0**-24), T.ToTensor()], 2),
    "p has a type of NumPy's": (lambda: [T.RandomHorizontalFlip(np.float64(0.3)), T.ToTensor()], 1),
    "p is true": (lambda: [T.RandomHorizontalFlip(True), T.ToTensor()], 1),
    "p is a tensor": (lambda: [T.RandomHorizontalFlip(torch.tensor(0.5)), T.ToTensor()], 1),
} | {
    f"by {mode.value}": (lambda mode=mode: [T.RandomResizedCrop(32, interpolation=mode), T.ToTensor()], 1)
    for mode in InterpolationMode
}


@pytest.mark.pixels
@pytest.mark.parametrize("name", CHAINS)
def test_what_is_made_and_drawn(name: str, photographs: list[Path], recorded: list[int]) -> None:
    make, first = CHAINS[name]
    assert_as_torchvision(T.Compose(make()), photographs)
    assert len(recorded) >= 3 * len(photographs) and recorded[0] == first
    assert_as_torchvision(T.Compose(make()), photographs[3:], "L")


@pytest.mark.parametrize("p", [2**70, None, "0.5", 1j, torch.tensor([0.5, 0.5]), Fraction(1, 2)])
def test_errors_of_a_probability(p: Any, photographs: list[Path]) -> None:
    raised = []
    for opener in (Image.open, headrace.pillow.open):
        torch.manual_seed(1)
        with headrace.pillow.deferred(), pytest.raises((TypeError, OverflowError, RuntimeError)) as caught:
            T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(p)])(opener(photographs[0]).convert("RGB"))
        raised.append((caught.type, str(caught.value), torch.get_rng_state().tolist()))
    assert raised[0] == raised[1]


def test_a_number_is_compared_as_by_torch() -> None:
    """Whatever a draw is: next to the number in float32, too."""
    draw = random.Random(2)
    values = [*(draw.random() * 2.0 ** -draw.randrange(110) for _ in range(300)), 0, 1, 0.5, -0.0, 2.0**-100, 2.0**-101]
    for value in values:
        bound, close = composed_images._in_float32(value), torch.tensor(value, dtype=torch.float32)
        assert (bound is None) == (0 < value < 2.0**-100)
        for drawn in (close, torch.nextafter(close, torch.tensor(0.0)), torch.nextafter(close, torch.tensor(1.0))):
            assert bound is None or (drawn.item() < bound) == bool(drawn.reshape(1) < value)
    for value in (math.nan, math.inf, -math.inf, 2**70, -1.0, 1.5):
        assert composed_images._in_float32(value) is None


def test_an_image_that_is_not_flipped_is_the_same_object(photographs: list[Path], recorded: list[int]) -> None:
    transform = T.Compose([T.RandomHorizontalFlip(0.0), T.RandomHorizontalFlip(0.0)])
    with headrace.pillow.deferred():
        image: Any = Image.open(photographs[0]).convert("RGB")
        made = transform(image)
    assert made is image and recorded == [2]
    made.paste((1, 2, 3), (0, 0, 5, 5))
    assert image.getpixel((4, 4)) == (1, 2, 3)


@pytest.mark.pixels
def test_in_inference_mode(photographs: list[Path], recorded: list[int]) -> None:
    with torch.inference_mode():
        assert_as_torchvision(T.Compose(CHAINS["training"][0]()), photographs)
    assert recorded[0] == 2


@pytest.mark.pixels
def test_threads_draw_what_one_does(photographs: list[Path]) -> None:
    """Each with a transform that it shares with the others, whose draws are none."""
    crop, flip = T.RandomResizedCrop(32, scale=(1, 1), ratio=(1, 1)), T.RandomHorizontalFlip(1.0)
    transform = T.Compose([crop, flip, T.ToTensor()])
    square = [path.with_suffix(".png") for path in photographs]
    for path, made in zip(photographs, square, strict=True):
        Image.open(path).convert("RGB").crop((0, 0, 60, 60)).save(made)
    expected = [transform(Image.open(path).convert("RGB")) for path in square]

    def make(number: int) -> bool:
        return torch.equal(transform(Image.open(square[number % 4]).convert("RGB")), expected[number % 4])

    with headrace.pillow.deferred(), ThreadPoolExecutor(4) as threads:
        assert all(threads.map(make, range(200)))


@pytest.mark.pixels
def test_images_that_are_not_converted(photographs: list[Path], recorded: list[int]) -> None:
    """The first crop of such an image reads the file: its errors come after the random numbers are drawn."""
    assert_as_torchvision(
        T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()]), photographs, None
    )
    assert set(recorded) == {1}


def test_boxes_are_torchvisions(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    sizes = [
        (500, 375),
        (1, 1),
        (30, 2000),
        (4000, 3),
        *((draw.randint(1, 900), draw.randint(1, 900)) for _ in range(96)),
    ]
    scales: list[Any] = [(0.08, 1.0), (0.9, 1.0), (0.0, 1), (1, 1), [0.3, 5.0]]
    ratios: list[Any] = [(3 / 4, 4 / 3), (1.0, 1.0), (0.1, 0.2), [3, 4]]
    for number in range(2000):
        (width, height), scale, ratio = draw.choice(sizes), draw.choice(scales), draw.choice(ratios)
        torch.manual_seed(number)
        with monkeypatch.context() as patch:
            patch.setattr(F, "get_dimensions", lambda image, size=(3, height, width): size)
            expected = T.RandomResizedCrop.get_params(torch.empty(0), scale, ratio)
        state = torch.get_rng_state()
        torch.manual_seed(number)
        made = draw_box(width, height, scale, ratio, torch.log(torch.tensor(ratio)).tolist())
        assert made == expected and set(map(type, made)) == {int}
        assert torch.equal(torch.get_rng_state(), state)


class OwnCrop(T.RandomResizedCrop):  # type: ignore[name-defined]
    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> Any:
        return 1, 2, 30, 40


class OwnTuple(tuple[int, ...]):
    """A size with a class of its own."""


def replaced(holder: Any, name: str, around: Callable[[Any], Any]) -> Callable[[Any, pytest.MonkeyPatch], None]:
    def change(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        plain = getattr(holder, name)
        made = around(plain)
        monkeypatch.setattr(holder, name, staticmethod(made) if name == "get_params" else made)

    return change


def on_step(number: int, name: str, value: Any) -> Callable[[Any, pytest.MonkeyPatch], None]:
    return lambda transform, monkeypatch: setattr(transform.transforms[number], name, value)


def negative(function: Any) -> Any:
    return lambda *arguments, **options: -function(*arguments, **options)


def moved(function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return (0, 0, *function(*arguments)[2:])

    return call


def darkened(function: Any) -> Any:
    return lambda self, *arguments, **options: function(self.point(lambda value: value // 2), *arguments, **options)


def as_they_are(image: Any, *arguments: Any, **options: Any) -> Any:
    return image


#: What a program may have put in place of what stands between the transforms and what is recorded.
CHANGES: dict[str, Callable[[Any, pytest.MonkeyPatch], None]] = {
    "get_params": replaced(module.RandomResizedCrop, "get_params", moved),
    "get_params of one": on_step(0, "get_params", moved(T.RandomResizedCrop.get_params)),
    "forward of one": on_step(1, "forward", as_they_are),
    "resized_crop": replaced(F, "resized_crop", lambda plain: lambda image, *others, **more: image.resize((32, 32))),
    "crop of Pillow's": replaced(_functional_pil, "crop", lambda plain: lambda image, *box: image),
    "Image.crop": replaced(Image.Image, "crop", darkened),
    "Image.resize": replaced(Image.Image, "resize", darkened),
    "Image.transpose": replaced(Image.Image, "transpose", darkened),
    "torch.rand": replaced(torch, "rand", negative),
    "torch.randint": replaced(torch, "randint", lambda plain: lambda *a, **b: torch.zeros(1, dtype=torch.int64)),
    "Tensor.__bool__": replaced(torch.Tensor, "__bool__", lambda plain: lambda self: not plain(self)),
    "Tensor.uniform_": replaced(torch.Tensor, "uniform_", lambda plain: lambda self, *a: plain(self, 0.9, 1.0)),
    "a module's hook": lambda transform, monkeypatch: transform.transforms[1].register_forward_hook(
        lambda step, inputs, output: output.rotate(90)
    ),
    "a class of one's own": lambda transform, monkeypatch: transform.transforms.__setitem__(0, OwnCrop(32)),
    "a size of one's own": on_step(0, "size", OwnTuple((20, 30))),
    "float64": lambda transform, monkeypatch: torch.set_default_dtype(torch.float64),
}


@pytest.mark.pixels
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_program_has_changed_is_called(
    name: str, photographs: list[Path], recorded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])
    assert_as_torchvision(transform, photographs)  # what is there before is known
    before = made_by(transform, Image.open, photographs)
    recorded.clear()
    try:
        CHANGES[name](transform, monkeypatch)
        assert_as_torchvision(transform, photographs)
        assert made_by(transform, Image.open, photographs) != before
        assert 2 not in recorded
    finally:
        torch.set_default_dtype(torch.float32)


class Counting(TorchFunctionMode):
    """Sees each call of torch's functions."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_torchvisions_calls(photographs: list[Path]) -> None:
    transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip()])
    seen = []
    for opener, context in ((Image.open, contextlib.nullcontext()), (headrace.pillow.open, headrace.pillow.deferred())):
        with context, Counting() as mode:
            made_by(transform, opener, photographs)
        seen.append(mode.names)
    assert seen[0] == seen[1] and "randint" in seen[0]


def test_draws_of_boxes_in_images_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float32 has no odd integers beyond 2^24."""
    edges = [(1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 25) + 3, (1 << 31) + 5, (1 << 33) + 7]
    for number, (width, height) in enumerate([*itertools.product(edges, (1, 700, 1 << 24))] * 4):
        torch.manual_seed(number)
        with monkeypatch.context() as patch:
            patch.setattr(F, "get_dimensions", lambda image, size=(3, height, width): size)
            expected = T.RandomResizedCrop.get_params(torch.empty(0), (0.08, 1.0), (0.1, 1e8))
        state = torch.get_rng_state()
        torch.manual_seed(number)
        logarithms = torch.log(torch.tensor((0.1, 1e8))).tolist()
        assert draw_box(width, height, (0.08, 1.0), (0.1, 1e8), logarithms) == expected
        assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("most", [6400, 0])
def test_crops_of_an_image_that_was_made_large(
    most: int, photographs: list[Path], recorded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform = T.Compose([T.RandomResizedCrop(200), T.RandomResizedCrop(32, scale=(0.9, 1.0))])
    raised: list[Any] = []
    with headrace.pillow.deferred():
        for opener in (Image.open, headrace.pillow.open):
            image = opener(photographs[0]).convert("RGB")
            with monkeypatch.context() as patch, pytest.raises(Image.DecompressionBombError) as caught:
                patch.setattr(Image, "MAX_IMAGE_PIXELS", most)
                torch.manual_seed(0)
                transform(image)
            raised.append((str(caught.value), torch.get_rng_state().tolist()))
    assert raised[0] == raised[1] and set(recorded) == ({1} if most else set())


def test_warnings_of_large_images(photographs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow looks at the size of each crop."""
    transform = T.Compose([T.RandomResizedCrop(32, scale=(0.9, 1.0)), T.RandomHorizontalFlip()])
    images: list[Any] = []
    with headrace.pillow.deferred():
        for opener in (Image.open, headrace.pillow.open):
            images.append(opener(photographs[0]).convert("RGB"))
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
        for image in images:
            with pytest.raises(Image.DecompressionBombError):
                transform(image)
