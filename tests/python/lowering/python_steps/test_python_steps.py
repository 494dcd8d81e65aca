"""Transforms without a native twin run in Python in their place: same pixels and draws, their own tracebacks."""

from __future__ import annotations

import random
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._recipe.draws.python_randomness import draws_process_wide, sample_randomness
from support import MEAN, STD, TENSOR, assert_same, pictures


class Turned:
    """A user's transform that draws from torch's generator."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.rotate(float(torch.empty(1).uniform_(-30, 30)))


class Noisy:
    """A transform of tensors of any dtype."""

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        if image.dtype == torch.uint8:
            return image ^ torch.randint(0, 4, image.shape, dtype=torch.uint8)
        return image + torch.randn(3, 1, 1, dtype=image.dtype)


def shaken(image: Image.Image) -> Image.Image:
    """Draws from the generators of the whole process."""
    angle = random.uniform(-9, 9) + np.random.uniform(-9, 9)  # noqa: NPY002
    return image.rotate(angle + float(torch.dropout(torch.ones(1), 0.5, True)))


def shrunk(image: Image.Image) -> torch.Tensor:
    """Makes a tensor of the image."""
    return torch.from_numpy(np.array(image.resize((20, 10)))).permute(2, 0, 1).to(torch.float32)


class Own:
    """Keeps a generator of its own, as albumentations' transforms do."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng()

    def set_random_seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.rotate(self.generator.uniform(-30, 30))


class Wrapper:
    """A user's class around such a transform."""

    def __init__(self) -> None:
        self.inner = Own()

    def __call__(self, image: Image.Image) -> Image.Image:
        return self.inner(image)


class Outer:
    """A class that keeps a user's class in a container."""

    def __init__(self) -> None:
        self.steps = {"turn": [Wrapper()]}

    def __call__(self, image: Image.Image) -> Image.Image:
        return self.steps["turn"][0](image)


REACHED, REACHED_INSIDE = Own(), Outer()


CROP, FLIP = T.RandomResizedCrop(48), T.RandomHorizontalFlip()
RECIPES: dict[str, list[Callable[[Any], Any]]] = {
    "on images": [CROP, FLIP, Turned(), *TENSOR],
    "first of all": [Turned(), CROP, FLIP, *TENSOR],
    "twice": [T.Resize(60), Turned(), T.CenterCrop(50), Turned(), FLIP, *TENSOR],
    "two in a row": [CROP, Turned(), Turned(), T.ToTensor()],
    "on bytes": [CROP, T.ToImage(), Noisy(), FLIP, T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD)],
    "on floats": [CROP, T.ToTensor(), Noisy(), T.Normalize(MEAN, STD), FLIP],
    "makes the tensor": [T.Resize(64), shrunk, FLIP],
    "makes bytes": [CROP, T.Grayscale(), Turned(), T.PILToTensor()],
    "own generator": [CROP, Own(), *TENSOR],
    "own generator inside": [CROP, Wrapper(), *TENSOR],
    "own generator further inside": [CROP, Outer(), *TENSOR],
    "own generator of a function": [CROP, lambda image: REACHED(image), *TENSOR],
    "own generator inside, of a function": [CROP, lambda image: REACHED_INSIDE(image), *TENSOR],
    "process-wide": [CROP, shaken, *TENSOR],
    "process-wide at the end": [CROP, *TENSOR, lambda image: image * random.random()],
}


def data(name: str) -> EncodedImages:
    return EncodedImages(pictures(), range(24), T.Compose(RECIPES[name]))


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_equal_to_the_oracle(name: str, memory_format: torch.memory_format) -> None:
    loader = DataLoader(data(name), 7, shuffle=True, seed=1, num_workers=2, memory_format=memory_format)
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 4


@pytest.mark.parametrize("name", RECIPES)
def test_same_batches_with_any_number_of_threads_and_after_resume(name: str) -> None:
    def batches(threads: int) -> list[torch.Tensor]:
        return [images for images, _ in DataLoader(data(name), 5, shuffle=True, seed=3, num_workers=threads)]

    alone = batches(0)
    for threads in (2, 7):
        assert all(map(torch.equal, batches(threads), alone))
    first = DataLoader(data(name), 5, shuffle=True, seed=3, num_workers=2)
    iterator = iter(first)
    next(iterator), next(iterator)
    second = DataLoader(data(name), 5, shuffle=True, seed=3)
    second.load_state_dict(first.state_dict())
    assert all(torch.equal(images, expected) for (images, _), expected in zip(second, alone[2:], strict=True))


@pytest.mark.parametrize("name", RECIPES)
def test_the_emulated_device_delivers_the_same(name: str) -> None:
    pytest.importorskip("headrace._gpu")
    loader = DataLoader(data(name), 8, seed=1, num_workers=2, device="emulated")
    assert_same(loader, list(loader.reference()))


def test_the_process_keeps_its_generators() -> None:
    def states() -> tuple[Any, ...]:
        numpys: Any = np.random.get_state()  # noqa: NPY002
        return random.getstate(), numpys[1].tolist(), torch.get_rng_state().tolist()

    for name in RECIPES:
        loader = DataLoader(data(name), 8, num_workers=2, seed=0)
        iterator = iter(loader)  # draws a seed here, as torch's own loader does
        before = states()
        list(iterator)
        assert states() == before, name


@pytest.mark.parametrize(
    ("draw", "process_wide"),
    [
        (lambda: torch.rand(3), False),
        (lambda: torch.empty(2).normal_(), False),
        (lambda: torch.randperm(5), False),
        (lambda: torch.rand_like(torch.ones(2)), False),
        (lambda: torch.distributions.Beta(0.5, 0.5).sample(), False),
        (lambda: torch.nn.functional.dropout(torch.ones(4)), True),
        (random.random, True),
        (lambda: np.random.rand(2), True),  # noqa: NPY002
        (lambda: np.random.default_rng(3).random(), False),
        (lambda: 3, False),
    ],
)
def test_whose_generator_is_drawn_from(draw: Callable[..., Any], process_wide: bool) -> None:
    assert draws_process_wide(draw) is process_wide
    before = torch.get_rng_state(), random.getstate()
    made = []
    for uniform in (0.3, 0.7, 0.3):
        with sample_randomness(uniform, process_wide=process_wide):
            made.append(str(draw()))
    assert made[0] == made[2]
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]


def test_a_generator_of_the_users_own_is_left_to_him() -> None:
    mine = torch.Generator().manual_seed(5)
    expected = torch.rand(2, generator=torch.Generator().manual_seed(5))
    with sample_randomness(0.5):
        assert torch.equal(torch.rand(2, generator=mine), expected)


def test_other_threads_draw_as_ever() -> None:
    torch.manual_seed(2)
    expected = torch.rand(2)
    torch.manual_seed(2)
    drawn = []
    with sample_randomness(0.5):
        thread = threading.Thread(target=lambda: drawn.append(torch.rand(2)))
        thread.start()
        thread.join()
    assert torch.equal(drawn[0], expected)


class Stateful:
    """Not thread-safe: concurrent calls would see each other's state."""

    def __init__(self) -> None:
        self.inside = 0

    def __call__(self, image: Image.Image) -> Image.Image:
        self.inside += 1
        turned = image.rotate(90).rotate(-90)  # releases the GIL
        assert self.inside == 1
        self.inside -= 1
        return turned


def test_each_thread_has_a_copy_of_its_own() -> None:
    loader = DataLoader(
        EncodedImages(pictures() * 4, None, T.Compose([CROP, Stateful(), *TENSOR])), 16, num_workers=4, seed=0
    )
    for _ in range(3):
        assert len(list(loader)) == 6


class Picky:
    """Raises at images of one size, as a user's transform might."""

    def __call__(self, image: Image.Image) -> Image.Image:
        if image.width == image.height == 33:
            raise ZeroDivisionError("no light")
        return image


@pytest.mark.parametrize("threads", [0, 2])
def test_a_step_that_raises_shows_its_own_traceback_and_the_sample(threads: int) -> None:
    blobs = list(pictures())
    blobs[9] = _png(33)
    loader = DataLoader(EncodedImages(blobs, None, T.Compose([Picky(), CROP, *TENSOR])), 4, num_workers=threads)
    iterator = iter(loader)
    next(iterator), next(iterator)
    with pytest.raises(ZeroDivisionError) as raised:
        next(iterator)
    error = raised.value
    assert isinstance(error, headrace.SampleError)
    assert (error.stage, error.index) == ("transform", 9)
    assert "sample 9 (blob 9 in memory" in str(error) and "no light" in str(error) and "Picky" in str(error)
    assert 'raise ZeroDivisionError("no light")' in "".join(traceback.format_exception(error))
    assert len(list(iterator)) == 3  # the remaining batches follow
    skipping = DataLoader(
        EncodedImages(blobs, None, T.Compose([Picky(), CROP, *TENSOR])), 4, num_workers=threads, on_error="skip"
    )
    with pytest.warns(UserWarning, match="1 samples could not be made"):
        assert sum(len(images) for images in skipping) == 23


def test_a_step_that_changes_its_mind_about_the_size() -> None:
    def odd(image: torch.Tensor) -> torch.Tensor:
        return image[:, :-1] if image.float().mean() < 0.2 else image

    blobs = [*pictures(2), _png(64)]
    loader = DataLoader(EncodedImages(blobs, None, T.Compose([T.Resize((30, 30)), T.ToTensor(), odd])), 1)
    iterator = iter(loader)
    next(iterator), next(iterator)
    with pytest.raises(TypeError, match=r"float32 \(3, 29, 30\), but the batch holds torch.float32 \(3, 30, 30\)"):
        next(iterator)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (
            [lambda image: image.undefined],
            r"raised AttributeError on a synthetic image of 500 x 375 pixels: .*undefined",
        ),
        ([T.CenterCrop(9), lambda image: image.convert("CMYK")], "do not return a tensor"),
        ([T.CenterCrop(9), np.array], "do not return a tensor"),
        (
            [lambda image: T.ToTensor()(image)],
            r"tensors of different shapes or dtypes, such as torch.float32 \(3, 375, 500\)",
        ),
        ([T.CenterCrop(9), T.ToTensor(), torch.Tensor.double], "return torch.float64, which the native path does not"),
        ([T.CenterCrop(9), T.ToTensor(), torch.Tensor.mean], r"return torch.float32 \(\), not one image"),
        ([T.ToTensor(), lambda image: image], "different shapes"),
    ],
)
def test_what_no_batch_can_be_made_of_is_not_lowered(steps: list[Any], words: str) -> None:
    with pytest.raises(LoweringError, match=words):
        lower(T.Compose(steps))


def test_explain_names_what_python_does_and_why() -> None:
    loader = DataLoader(data("on images"), 4)
    line = next(line for line in loader.explain().lines if "Turned" in line.part)
    assert line.runs == "Python"
    assert "has no native twin" in line.how
    assert [line.runs for line in loader.explain().lines if "Normalize" in line.part] == ["native"]


def test_stats_count_the_calls() -> None:
    loader = DataLoader(data("on images"), 4, num_workers=2)
    list(loader)
    stage = next(stage for stage in loader.stats().stages if stage.name == "python")
    assert stage.items == 24 and stage.busy_s > 0


def test_albumentations_draws_alike_in_any_thread() -> None:
    albumentations = pytest.importorskip("albumentations")
    augment = albumentations.Compose([albumentations.HorizontalFlip(), albumentations.RandomBrightnessContrast(p=1)])
    steps: list[Any] = [CROP, lambda image: Image.fromarray(augment(image=np.array(image))["image"]), *TENSOR]
    dataset = EncodedImages(pictures(), None, T.Compose(steps))
    alone = list(DataLoader(dataset, 6, seed=2))
    for threads in (2, 7):
        loader = DataLoader(dataset, 6, seed=2, num_workers=threads)
        assert all(map(torch.equal, loader, alone))
    loader = DataLoader(dataset, 6, seed=2)
    assert_same(loader, list(loader.reference()))


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    first, second = (lower(T.Compose([CROP, Turned(), *TENSOR])) for _ in range(2))
    assert first.fingerprint() == second.fingerprint()
    assert first.fingerprint() != lower(T.Compose([CROP, Picky(), *TENSOR])).fingerprint()


def test_a_dtype_is_the_last_conversion() -> None:
    loader = DataLoader(data("on floats"), 6, dtype=torch.bfloat16, seed=0)
    wide = DataLoader(data("on floats"), 6, seed=0)
    for (images, _), (expected, _) in zip(loader, wide, strict=True):
        assert torch.equal(images, expected.to(torch.bfloat16))


def _png(edge: int) -> bytes:
    from io import BytesIO

    out = BytesIO()
    Image.new("RGB", (edge, edge)).save(out, "PNG")
    return out.getvalue()
