"""Composes of albumentations in native recipes: batches equal what albumentations' own code makes of the same draws.

The transforms of a Compose get generators that give the numbers of the sample's draws; all else is albumentations'.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace._lowering import LoweringError, lower
from headrace._lowering.libraries.albumentations_wrappers import wrapped_compose
from headrace._recipe.draws.draws import Draws
from headrace.transforms import from_albumentations
from support import data_folder, in_host_memory

pytestmark = pytest.mark.pixels

A: Any = pytest.importorskip("albumentations")
cv2: Any = pytest.importorskip("cv2")
ToTensorV2: Any = pytest.importorskip("albumentations.pytorch").ToTensorV2
END = (A.Normalize(), ToTensorV2())
TRAIN = (A.RandomResizedCrop((64, 48)), A.HorizontalFlip(), *END)
SEED = 5


class Given(random.Random):
    """A generator that gives these numbers."""

    def __init__(self, numbers: Sequence[float]) -> None:
        super().__init__(0)
        self.numbers = iter(numbers)

    def random(self) -> float:
        return next(self.numbers)

    def uniform(self, a: float, b: float) -> float:
        """The next number, which is already between the two."""
        return next(self.numbers)


class _Reader:
    """Gives each transform the numbers of a row of draws that belong to it, in the order of the recipe."""

    def __init__(self, row: Sequence[float]) -> None:
        self._row = iter(row)

    def take(self, count: int) -> list[float]:
        return [next(self._row) for _ in range(count)]

    def give(self, transform: Any, image: Any) -> None:
        """Sets the generator of a transform that is about to be called on an array."""
        name = type(transform).__name__
        numbers: list[float] = []
        if name == "RandomResizedCrop":
            drawn = self.take(22)
            numbers = self._box_of(transform, drawn, image)
        elif name in ("RandomCrop", "CenterCrop"):
            if transform.pad_if_needed:
                self.take(2)
            numbers = self.take(2)
        elif name == "PadIfNeeded":
            self.take(2)
        elif name == "RandomBrightnessContrast":
            alpha, beta = self.take(2)
            numbers = [alpha - 1.0, beta / 255]
        if transform.p < 1 or name in ("HorizontalFlip", "VerticalFlip"):
            numbers = [*self.take(1), *numbers]
        transform.py_random = Given(numbers)

    def _box_of(self, transform: Any, drawn: list[float], image: Any) -> list[float]:
        """The tries up to the one that fits, then the position."""
        height, width = image.shape[:2]
        numbers: list[float] = []
        for share, aspect in zip(drawn[:20:2], drawn[1:20:2], strict=True):
            area = share * (height * width)
            numbers += [area, math.log(aspect)]
            if round(math.sqrt(area * aspect)) <= width and round(math.sqrt(area / aspect)) <= height:
                break
        return [*numbers, *drawn[20:]]


def expected_of(transforms: Sequence[Any], image: Any, row: Sequence[float]) -> torch.Tensor:
    """What the transforms make of an array with the numbers of a row of draws."""
    reader = _Reader(row)
    sample = {"image": image}
    for transform in copy.deepcopy(list(transforms)):
        reader.give(transform, sample["image"])
        sample = transform(**sample)
    made = sample["image"]
    assert isinstance(made, torch.Tensor)
    return made


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """JPEG files of several shapes, slivers too."""
    folder, noise = tmp_path_factory.mktemp("jpegs"), np.random.default_rng(2)
    made = []
    for number, (width, height) in enumerate(
        [(90, 70), (200, 300), (48, 64), (400, 60), (50, 380), (96, 128), (300, 9)]
    ):
        small = noise.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
        made.append(folder / f"{number}.jpg")
        image.save(made[-1], quality=90)
    return made


def loader_of(paths: list[Path], transform: Any, **options: Any) -> headrace.DataLoader:
    dataset = headrace.ImageFiles(paths, transform=transform)
    return headrace.DataLoader(dataset, 3, num_workers=2, seed=SEED, **options)


CHAINS: dict[str, tuple[Any, ...]] = {
    "train": TRAIN,
    "bytes": (A.RandomResizedCrop((64, 48), scale=(0.3, 0.5), ratio=(0.5, 2)), A.VerticalFlip(p=0.3), ToTensorV2()),
    "resize": (A.Resize(40, 56), A.HorizontalFlip(p=1), *END),
    "crop": (
        A.PadIfNeeded(70, 60, fill=(1, 2, 3)),
        A.RandomCrop(64, 56),
        A.Normalize((0.5,) * 3, (0.2, 0.3, 0.4)),
        ToTensorV2(),
    ),
    "centre": (A.CenterCrop(65, 52, pad_if_needed=True, fill=7), A.HorizontalFlip(p=0.5), *END),
    "eval": (A.SmallestMaxSize(57), A.CenterCrop(50, 50), *END),
    "longest": (A.LongestMaxSize(61), A.PadIfNeeded(61, 61), *END),
    "sometimes": (A.Resize(48, 64), A.RandomCrop(30, 30, p=1), A.Resize(30, 30, p=0.5), *END),
    "colours": (
        A.RandomResizedCrop((40, 40)),
        A.HorizontalFlip(),
        A.RandomBrightnessContrast(),
        A.RandomBrightnessContrast((-0.5, -0.2), (0.1, 2.0), p=0.7),
        *END,
    ),
    "values first": (
        A.Resize(30, 41),
        A.Normalize(),
        A.HorizontalFlip(p=0.5),
        A.VerticalFlip(p=0.5),
        ToTensorV2(),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_batches_are_albumentations(name: str, paths: list[Path]) -> None:
    chain = CHAINS[name]
    loader = loader_of(paths, from_albumentations(A.Compose(list(chain))))
    assert loader.native and "called in Python" not in str(loader.explain())
    recipe = lower(from_albumentations(A.Compose(list(chain))))
    draws = Draws(recipe.columns, SEED)
    for epoch in range(3):
        made = torch.cat(list(loader))
        rows = draws.batch(epoch, range(len(paths)), [0] * len(paths))
        for index, path in enumerate(paths):
            image = np.array(Image.open(path).convert("RGB"))
            expected = expected_of(chain, image, rows[index].tolist())
            assert made.dtype == expected.dtype
            assert torch.equal(made[index], expected), (epoch, path)


def test_explain_names_the_resize(paths: list[Path]) -> None:
    text = str(loader_of(paths, from_albumentations(A.Compose(list(TRAIN)))).explain())
    assert f"as in OpenCV {cv2.__version__}" in text and "opencv_bilinear" in text


def test_the_oracle_agrees(paths: list[Path]) -> None:
    for chain in CHAINS.values():
        loader_of(paths, from_albumentations(A.Compose(list(chain))), shuffle=True).verify(3)  # raises


@pytest.mark.parametrize("name", ["train", "colours"])
def test_devices_get_the_same_batches(name: str, paths: list[Path]) -> None:
    transform = from_albumentations(A.Compose(list(CHAINS[name])))
    for made, expected in zip(loader_of(paths, transform, device="emulated"), loader_of(paths, transform), strict=True):
        assert torch.equal(in_host_memory(made), expected)


def test_photographs() -> None:
    paths = sorted(data_folder("imagenet_dev").rglob("*.JPEG"))[:60]
    chain = (A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), *END)
    made = torch.cat(list(loader_of(paths, from_albumentations(A.Compose(list(chain))))))
    rows = Draws(lower(from_albumentations(A.Compose(list(chain)))).columns, SEED).batch(0, range(60), [0] * 60)
    for index, path in enumerate(paths):
        image = np.array(Image.open(path).convert("RGB"))
        assert torch.equal(made[index], expected_of(chain, image, rows[index].tolist())), path


STEPS = A.Compose(list(TRAIN))


def _in_a_line(image: Any) -> Any:
    return STEPS(image=np.array(image))["image"]


def _in_lines(image: Any) -> Any:
    array = np.asarray(image)
    augmented = STEPS(image=array)
    return augmented["image"]


class _Object:
    def __init__(self, augment: Any) -> None:
        self.augment = augment

    def __call__(self, img: Any) -> Any:
        img = np.array(img)
        return self.augment(image=img)["image"]


def _of_closure() -> Callable[[Any], Any]:
    steps = STEPS
    return lambda image: steps(image=np.array(image))["image"]


@pytest.mark.parametrize("call", [_in_a_line, _in_lines, _Object(STEPS), _of_closure()])
def test_code_that_calls_a_compose_is_recognised(call: Any, paths: list[Path]) -> None:
    assert wrapped_compose(call) is STEPS
    loader = loader_of(paths, call)
    assert "called in Python" not in str(loader.explain())
    expected = torch.cat(list(loader_of(paths, from_albumentations(STEPS))))
    assert torch.equal(torch.cat(list(loader)), expected)


def _with_a_flip(image: Any) -> Any:
    return STEPS(image=np.array(image)[:, ::-1])["image"]


def _with_another_key(image: Any) -> Any:
    return STEPS(image=np.array(image))["mask"]


def _with_a_mask(image: Any) -> Any:
    return STEPS(image=np.array(image), mask=np.array(image))["image"]


def _with_a_sum(image: Any) -> Any:
    return STEPS(image=np.array(image))["image"] + 1


def _with_a_dtype(image: Any) -> Any:
    return STEPS(image=np.array(image, np.float32))["image"]


def _with_a_branch(image: Any) -> Any:
    if image.width < 3:
        return STEPS(image=np.array(image))["image"]
    return image


class _Property:
    @property
    def augment(self) -> Any:
        return STEPS

    def __call__(self, image: Any) -> Any:
        return self.augment(image=np.array(image))["image"]


@pytest.mark.parametrize(
    "call",
    [
        _with_a_flip,
        _with_another_key,
        _with_a_mask,
        _with_a_sum,
        _with_a_dtype,
        _with_a_branch,
        _Property(),
        STEPS,
        len,
    ],
)
def test_other_code_is_not(call: Any) -> None:
    assert wrapped_compose(call) is None


def _refused() -> Iterator[tuple[Any, str]]:
    yield A.Compose([A.RandomResizedCrop((40, 40)), A.CLAHE(), *END]), "CLAHE"
    yield A.Compose([A.Resize(40, 40, interpolation=2), *END]), "interpolation"
    yield A.Compose([A.Resize(40, 40, area_for_downscale="image"), *END]), "INTER_AREA"
    yield A.Compose([A.Normalize(), A.Resize(40, 40), ToTensorV2()]), "floats"
    yield A.Compose([A.Resize(40, 40), A.PadIfNeeded(40, 40, border_mode=4), *END]), "constant"
    yield (
        A.Compose([A.Resize(40, 40), A.RandomBrightnessContrast(brightness_by_max=False), *END]),
        "values of the image",
    )


@pytest.mark.parametrize(("compose", "why"), list(_refused()))
def test_what_is_not_native_is_called_in_python(compose: Any, why: str, paths: list[Path]) -> None:
    loader = loader_of(paths, from_albumentations(compose))
    text = str(loader.explain())
    assert "called in Python" in text and why in text
    assert next(iter(loader)).shape[1:] == (3, 40, 40)


@pytest.mark.parametrize(
    ("compose", "why"),
    [
        (A.Compose([A.Resize(40, 40), A.Normalize(normalization="image"), ToTensorV2()]), "values of the image"),
        (A.Compose([A.Resize(40, 40), A.Normalize(p=0.5), ToTensorV2()]), "left out"),
        (A.Compose([A.Resize(40, 40), A.Normalize()]), "ToTensorV2"),
        (A.Compose([A.Resize(40, 40), *END], additional_targets={"other": "image"}), "targets"),
        (A.Compose([A.Resize(40, 40), *END], p=0.5), "left out"),
        (A.Compose([A.RandomResizedCrop((40, 40), ratio=(3, 4)), *END]), "thin"),
    ],
)
def test_refusals_say_why(compose: Any, why: str) -> None:
    with pytest.raises(LoweringError, match=why):
        lower(from_albumentations(compose), native_only=True)


def test_a_subclass_is_not_native(paths: list[Path]) -> None:
    class Flip(A.HorizontalFlip):
        """May do anything."""

    text = str(loader_of(paths, from_albumentations(A.Compose([A.Resize(40, 40), Flip(), *END]))).explain())
    assert "called in Python" in text and "Flip" in text


def test_functions_that_a_program_has_replaced_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def lowered() -> Any:
        return lower(from_albumentations(A.Compose([A.Resize(40, 40), A.HorizontalFlip(), *END])), native_only=True)

    lowered()
    plain, resize = A.HorizontalFlip.apply, cv2.resize
    with monkeypatch.context() as patch, pytest.raises(LoweringError, match=r"HorizontalFlip\.apply has been replaced"):
        patch.setattr(A.HorizontalFlip, "apply", lambda self, img, **params: plain(self, img))
        lowered()
    with monkeypatch.context() as patch, pytest.raises(LoweringError, match=r"cv2\.resize"):
        patch.setattr(cv2, "resize", lambda *args, **kwargs: resize(*args, **kwargs))
        lowered()
    lowered()


def test_changes_between_epochs_take_effect(paths: list[Path]) -> None:
    compose = A.Compose([A.Resize(40, 40), A.HorizontalFlip(p=0.0), *END])
    loader = loader_of(paths, lambda image: compose(image=np.array(image))["image"])
    plain = torch.cat(list(loader))
    compose.transforms[1].p = 1.0
    assert torch.equal(torch.cat(list(loader)), plain.flip(-1))


def test_a_crop_that_does_not_fit_names_the_sample(paths: list[Path]) -> None:
    loader = loader_of(paths, from_albumentations(A.Compose([A.CenterCrop(65, 52), *END])))
    with pytest.raises(headrace.SampleError, match=r"65, 52"):
        list(loader)


def test_called_directly_it_is_the_compose(paths: list[Path]) -> None:
    compose = A.Compose([A.Resize(40, 40), *END])
    image = Image.open(paths[0])
    transform = from_albumentations(compose)
    assert torch.equal(transform(image), compose(image=np.array(image))["image"])
    assert torch.equal(headrace.ImageFiles(paths, transform=transform)[0], transform(image))
    assert "Resize" in repr(transform)
    with pytest.raises(TypeError, match="albumentations"):
        from_albumentations(lambda image: image)
