"""Effects on deferred images: recorded, made in the native pass, and equal to Pillow's and torchvision's."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from damage import sound_files
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import headrace
from headrace import transforms
from headrace._base.native import core
from headrace._recipe.arithmetic import blur_rule
from headrace.pillow.deferred_image import is_deferred
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
T = torchvision.transforms
from torchvision.transforms import functional as F  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

CORNERS = [[0, 0], [60, 0], [60, 42], [0, 42]]
FACTORS = (0, 0.0, 0.3, 1, 1.0, 1.7, -0.5, 25.0, 1e5)
EFFECTS: dict[str, Callable[[Any], Any]] = {
    **{f"brightness {by}": lambda image, by=by: ImageEnhance.Brightness(image).enhance(by) for by in FACTORS},  # type: ignore[misc]
    **{f"contrast {by}": lambda image, by=by: ImageEnhance.Contrast(image).enhance(by) for by in FACTORS},  # type: ignore[misc]
    **{f"saturation {by}": lambda image, by=by: ImageEnhance.Color(image).enhance(by) for by in FACTORS},  # type: ignore[misc]
    **{f"posterize {bits}": lambda image, bits=bits: F.posterize(image, bits) for bits in range(1, 9)},  # type: ignore[misc]
    **{f"solarize {at}": lambda image, at=at: F.solarize(image, at) for at in (-3, 0, 99, 99.5, 128, 255, 256)},  # type: ignore[misc]
    "invert": F.invert,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "v2 posterize": lambda image: v2.functional.posterize(image, 3),
    "v2 solarize": lambda image: v2.functional.solarize(image, 77.0),
    "v2 invert": v2.functional.invert,
    "v2 autocontrast": v2.functional.autocontrast,
    "v2 equalize": v2.functional.equalize,
    "headrace posterize": transforms.RandomPosterize(5, 1.0),
    "headrace solarize": transforms.RandomSolarize(200, 1.0),
    "headrace invert": transforms.RandomInvert(1.0),
    "headrace autocontrast": transforms.RandomAutocontrast(1.0),
    "headrace equalize": transforms.RandomEqualize(1.0),
    **{f"sharpness {by}": lambda image, by=by: ImageEnhance.Sharpness(image).enhance(by) for by in FACTORS},  # type: ignore[misc]
    "v1 sharpness": lambda image: F.adjust_sharpness(image, 1.6),
    "v2 sharpness": lambda image: v2.functional.adjust_sharpness(image, 0.4),
    "rotate": lambda image: image.rotate(33),
    "rotate, expanded": lambda image: image.rotate(-18.4, Image.Resampling.BICUBIC, expand=True),
    "shear": lambda image: image.transform(image.size, Image.Transform.AFFINE, (1, 0.3, 0, 0, 1, 0)),
    "to another size": lambda image: image.transform((9, 70), 0, (2.0, 0.1, -3.5, 0.0, 0.5, 1.0), 2),
    "perspective": lambda image: image.transform(
        (50, 40), Image.Transform.PERSPECTIVE, [1.1, 0.1, -2.0, 0.0, 0.9, 3.0, 1e-3, -2e-3], Image.Resampling.BILINEAR
    ),
    "v1 affine": lambda image: F.affine(image, 12.0, [3, -2], 1.1, [5.0, 0.0], F.InterpolationMode.BILINEAR),
    "v2 rotate": lambda image: v2.functional.rotate(image, 77.0, expand=True, fill=9),
    "grayscale": lambda image: F.to_grayscale(image, 3),
    "v2 grayscale": lambda image: v2.functional.rgb_to_grayscale(image, 3),
    "headrace grayscale": transforms.Grayscale(3),
}
FILLED: dict[str, Callable[[Any], Any]] = {
    "rotate": lambda image: image.rotate(45.5, fillcolor=(1, 200, 30)),
    "v1 perspective": lambda image: F.perspective(image, CORNERS, [[2, 1], [60, 3], [55, 42], [0, 40]], fill=[4, 5, 6]),
    "v2 affine": lambda image: v2.functional.affine(image, -9.0, [1, 1], 0.8, [0.0, 4.0], fill=[255, 0, 127]),
}
OF_COLOURS: dict[str, Callable[[Any], Any]] = {  # which are recorded for RGB images alone
    **{f"hue {by}": lambda image, by=by: F.adjust_hue(image, by) for by in (-0.5, -0.01, 0, 0.1, 0.5)},  # type: ignore[misc]
    "v2 hue": lambda image: v2.functional.adjust_hue(image, 0.2),
    "headrace hue": transforms.ColorJitter(hue=(0.1, 0.1)),
}
BLURS: dict[str, Callable[[Any], Any]] = {
    "blur": T.GaussianBlur(5, (1.2, 1.2)),
    "blur, wide": T.GaussianBlur((7, 3), (0.4, 0.4)),
    "v2 blur": lambda image: v2.functional.gaussian_blur(image, [3, 5], [2.0, 2.0]),
    "headrace blur": transforms.GaussianBlur(9, 0.7),
}
UNRECORDED: dict[str, Callable[[Any], Any]] = {
    "two sigmas": lambda image: v2.functional.gaussian_blur(image, [7, 3], [0.4, 2.0]),
    "no sigma": lambda image: v2.functional.gaussian_blur(image, [3, 3]),
    "a function of torchvision v1": lambda image: F.gaussian_blur(image, 3),
    "solarize": lambda image: ImageOps.solarize(image),
    "factor too large": lambda image: ImageEnhance.Contrast(image).enhance(float("inf")),
    "factor of numpy": lambda image: ImageEnhance.Color(image).enhance(np.float64(0.25)),
    "cutoff": lambda image: ImageOps.autocontrast(image, 2),
    "tone": lambda image: ImageOps.autocontrast(image, preserve_tone=True),
    "part": lambda image: ImageOps.equalize(image, Image.new("1", image.size, 1)),
    "hue out of range": lambda image: F.adjust_hue(image, 0.7),
    "no bits": lambda image: F.posterize(image, 0),
    "9 bits": lambda image: F.posterize(image, 9),
    "threshold of numpy": lambda image: F.solarize(image, np.int64(100)),
    "blur of an even size": lambda image: v2.functional.gaussian_blur(image, [4, 4], [1.0, 1.0]),
    "blur wider than the image": T.GaussianBlur(99, (1.0, 1.0)),
    "degenerate": lambda image: ImageEnhance.Contrast(image).degenerate,
    "intermediate mode": lambda image: ImageEnhance.Color(image).intermediate_mode,
    "warp by a number that is not one": lambda image: image.transform((5, 5), 0, (1, 0, float("nan"), 0, 1, 0)),
    "warp with too few numbers": lambda image: image.transform((5, 5), 0, (1, 0, 0)),
    "warp with a wrong filter": lambda image: image.transform((5, 5), 0, (1, 0, 0, 0, 1, 0), 1),
    "warp to nothing": lambda image: image.transform((0, 5), 0, (1, 0, 0, 0, 1, 0)),
    "warp with a name as fill": lambda image: image.transform((70, 70), 0, (1, 0, 0, 0, 1, 0), fillcolor="white"),
    "warp with a fill of bands": lambda image: image.rotate(20, fillcolor=(1, 2, 3)),
    "extent": lambda image: image.transform((20, 20), Image.Transform.EXTENT, (1, 2, 30, 40)),
    "quad": lambda image: image.transform((20, 20), Image.Transform.QUAD, (0, 0, 0, 40, 60, 42, 60, 0)),
    "filter": lambda image: image.filter(ImageFilter.SMOOTH),
}


def outcome(open_: Any, path: Path, mode: str, steps: list[Any]) -> Any:
    try:
        image = open_(path).convert(mode)
        for step in steps:
            image = step(image)
        if not isinstance(image, Image.Image):
            return image
        kept = image.mode, image.size, image.info, image.readonly, image.format
        return kept, np.asarray(image).tobytes(), type(image).__qualname__
    except Exception as error:
        return type(error), str(error)


def deferred(path: Path, mode: str, steps: list[Any]) -> Any:
    with headrace.pillow.deferred():
        return outcome(Image.open, path, mode, steps)


@pytest.fixture(scope="module")
def small(photographs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 61 x 43 pixels with a resolution in its info."""
    path = tmp_path_factory.mktemp("small") / "small.jpg"
    Image.open(photographs[0]).resize((61, 43)).save(path, dpi=(72, 72))
    return path


def recorded(path: Path, mode: str, step: Any) -> bool:
    with headrace.pillow.deferred():
        return is_deferred(step(Image.open(path).convert(mode)))


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_is_recorded_and_equal(name: str, mode: str, small: Path) -> None:
    step = EFFECTS[name]
    assert recorded(small, mode, step)
    assert deferred(small, mode, [step]) == outcome(Image.open, small, mode, [step])


@pytest.mark.pixels
@pytest.mark.parametrize("name", [*OF_COLOURS, *BLURS, *FILLED])
def test_an_effect_of_colours_is_recorded_and_equal(name: str, small: Path) -> None:
    step = (OF_COLOURS | BLURS | FILLED)[name]
    assert recorded(small, "RGB", step) == (name not in BLURS or blur_rule.is_native_blur_exact())
    for mode in ("RGB", "L"):
        assert deferred(small, mode, [step]) == outcome(Image.open, small, mode, [step])


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", UNRECORDED)
def test_what_is_not_recorded_is_pillows(name: str, mode: str, small: Path) -> None:
    step = UNRECORDED[name]
    assert deferred(small, mode, [step])[:2] == outcome(Image.open, small, mode, [step])[:2]


@pytest.mark.pixels
def test_chains_of_effects_and_geometry(photographs: list[Path], tmp_path: Path) -> None:
    moves: list[Any] = [
        lambda image: image.resize((40, 31), Image.Resampling.BILINEAR),
        lambda image: image.crop((3, 2, 30, 22)),
        lambda image: image.crop((-2, -1, 20, 21)),  # beyond the image: Pillow makes the pixels
        lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        lambda image: image.transpose(Image.Transpose.ROTATE_90),
        lambda image: image.convert("L"),
        lambda image: image.convert("RGB"),
    ]
    effects = [*EFFECTS.values(), *OF_COLOURS.values(), *BLURS.values(), *FILLED.values()]
    path, draw = tmp_path / "image.jpg", random.Random(0)
    files = sound_files(photographs)[:-1]
    made = 0
    for number in range(400):
        path.write_bytes(files[number % len(files)])
        steps = [draw.choice(moves if draw.random() < 0.5 else effects) for _ in range(draw.randint(1, 7))]
        theirs = outcome(Image.open, path, "RGB", steps)
        made += len(theirs) == 3
        assert deferred(path, "RGB", steps) == theirs, number
    assert made > 300


@pytest.mark.pixels
@pytest.mark.parametrize("family", [T, v2, transforms], ids=["v1", "v2", "headrace"])
def test_random_transforms_are_one_pass(family: Any, photographs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    run = core.decode_fuse

    def counted(*args: Any) -> Any:
        passes.append(1)
        return run(*args)

    monkeypatch.setattr(core, "decode_fuse", counted)
    chain = family.Compose(
        [
            family.RandomResizedCrop(48),
            family.RandomHorizontalFlip(),
            family.RandomApply([family.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8),
            family.RandomGrayscale(0.2),
            family.RandomSolarize(128, 0.2),
            family.RandomAutocontrast(),
            family.RandomEqualize(0.2),
            family.RandomAdjustSharpness(1.7, 0.5),
            family.RandomRotation(20),
            family.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), 5),
            family.RandAugment(),
            family.TrivialAugmentWide(),
            family.PILToTensor(),
        ]
    )
    for seed in range(40):
        made = []
        for context in (None, headrace.pillow.deferred()):
            torch.manual_seed(seed)
            random.seed(seed)
            if context is None:
                made.append(chain(Image.open(photographs[seed % 5]).convert("RGB")))
            else:
                with context:
                    made.append(chain(Image.open(photographs[seed % 5]).convert("RGB")))
        assert torch.equal(*made)
    assert len(passes) == 40


def test_a_damaged_file_is_pillows(photographs: list[Path], tmp_path: Path) -> None:
    data, path = photographs[0].read_bytes(), tmp_path / "damaged.jpg"
    at = data.index(b"\xff\xda") + 2000
    path.write_bytes(data[:at] + b"\xff\xd9" + data[at:])  # ends early: libjpeg fills the rest
    steps = [lambda image: image.resize((50, 40)), *OF_COLOURS.values(), *EFFECTS.values()]
    for count in (2, 4, 9, len(steps)):
        assert deferred(path, "RGB", steps[:count]) == outcome(Image.open, path, "RGB", steps[:count])


def test_functions_are_put_back() -> None:
    kernels = v2.functional._utils._KERNEL_REGISTRY

    def functions() -> list[Any]:
        return [
            ImageEnhance.Color.__init__,
            T.GaussianBlur.forward,
            F.F_pil.adjust_hue,
            kernels[v2.functional.adjust_hue][Image.Image],
            headrace._recipe.arithmetic.functional_pil.adjust_hue,
        ]

    before = functions()
    with headrace.pillow.deferred():
        assert not any(ours is plain for ours, plain in zip(functions(), before, strict=True))
    assert all(one is other for one, other in zip(functions(), before, strict=True))


def test_a_subclass_of_an_enhancer_is_its_own(small: Path) -> None:
    class Inverse(ImageEnhance.Brightness):
        def enhance(self, factor: float) -> Image.Image:
            return super().enhance(1 / factor)

    step = lambda image: Inverse(image).enhance(2.0)  # noqa: E731
    assert deferred(small, "RGB", [step]) == outcome(Image.open, small, "RGB", [step])


def test_public_functions_can_be_pickled(photographs: list[Path]) -> None:
    """A function is pickled by its name, under which it has to be found."""
    functions = [ImageOps.invert, ImageOps.solarize, F.gaussian_blur, F.adjust_hue, v2.functional.posterize]
    with headrace.pillow.deferred():
        Image.open(photographs[0]).convert("RGB")
        assert pickle.loads(pickle.dumps(functions)) == functions
