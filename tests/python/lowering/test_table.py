"""The table of docs/transforms.md lists every transform, and says what happens when it is tried."""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from bench.transforms import page

import torchvision_shim
from headrace import transforms as H
from headrace._engine import destination, device_engine
from headrace._lowering import LoweringError, lower
from headrace._recipe.arithmetic import blur_rule
from support import REPOSITORY

PAGE = REPOSITORY / "docs" / "transforms.md"
NATIVE, IN_PYTHON, BY_CPU = "native", "Python", "CPU"
Row = tuple[str, str]  # on the CPU, on a device

#: Arguments of the constructors, where there must be some. T: the module; X: transforms to choose from.
ARGUMENTS = {
    "AugMixAugment": "cls.__init__.__globals__['augmix_ops'](3)",
    "AugmentOp": "'Invert'",
    "AutoAugment timm": "cls.__init__.__globals__['auto_augment_policy']('original')",
    "CenterCrop": "8",
    "CenterCropOrPad": "8",
    "CenterCropToSequence": "16, 9",
    "Compose": "X",
    "ConvertBoundingBoxFormat": "'XYXY'",
    "ConvertImageDtype": "torch.float32",
    "CutMix": "num_classes=3",
    "FiveCrop": "8",
    "GaussianBlur": "3",
    "Lambda": "lambda image: image",
    "LinearTransformation": "torch.eye(192), torch.zeros(192)",
    "MixUp": "num_classes=3",
    "Normalize": "[0.5] * 3, [0.5] * 3",
    "Pad": "1",
    "RandAugment timm": "[]",
    "RandomAdjustSharpness": "2",
    "RandomAffine": "30",
    "RandomApply": "X",
    "RandomChoice": "X",
    "RandomCrop": "8",
    "RandomCropOrPad": "8",
    "JPEG": "50",
    "RandomCropToSequence": "16, 9",
    "RandomOrder": "X",
    "RandomPad": "(8, 8)",
    "RandomPosterize": "4",
    "RandomResize": "8, 9",
    "RandomResizedCrop": "8",
    "RandomResizedCropAndInterpolation": "8",
    "RandomResizedCropToSequence": "16, 9",
    "RandomRotation": "30",
    "RandomShortestSize": "8",
    "RandomSolarize": "128",
    "Resize": "8",
    "ResizeKeepRatio": "8",
    "ResizeKeepRatioToSequence": "16, 9",
    "ResizeToSequence": "16, 9",
    "Patchify": "4",
    "ScaleJitter": "(8, 8)",
    "SetClampingMode": "None",
    "TenCrop": "8",
    "ToDtype": "torch.float32, scale=True",
    "TrimBorder": "2",
    "UniformTemporalSubsample": "2",
}
ON_TENSORS = {"ConvertImageDtype", "GaussianNoise", "LinearTransformation", "Normalize", "RandomErasing", "ToDtype"}
ON_TENSORS |= {"PatchRandomErasing", "Patchify", "ToPureTensor", "UniformTemporalSubsample"}
CONVERTERS = {"MaybePILToTensor", "MaybeToTensor", "PILToTensor", "ToImage", "ToTensor"}
#: Names, where it runs on the CPU and on a device, any speed, the reason.
_ROW = re.compile(r"^\| (`.+?`) \| (\w+) \| (\w+) \| (?:[\u2013.\d]+ \| )?(.*?) ?\|$", re.MULTILINE)
TIMM = ("transforms", "random_erasing", "auto_augment", "naflex_transforms", "naflex_random_erasing")


def table(heading: str) -> dict[str, Row]:
    """The rows below a heading of the page, one for each name of the first column."""
    part = PAGE.read_text().partition(f"### {heading}\n")[2].partition("\n#")[0]
    rows: dict[str, Row] = {}
    for names, cpu, device, reason in re.findall(_ROW, part):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in rows, f"{name} has two rows"
            rows[name] = cpu, device
            assert cpu == NATIVE or reason, f"{name} lacks a reason"
    return rows


def classes(*modules: ModuleType) -> dict[str, list[type]]:
    """The classes of transforms in some modules, by name; without base classes and enums."""
    found: dict[str, list[type]] = {}
    for module in modules:
        for name, cls in vars(module).items():
            if inspect.isclass(cls) and not issubclass(cls, enum.Enum) and name != "Transform":
                found.setdefault(name, []).append(cls)
    return found


def tried(cls: type, library: str) -> Row:
    """What happens to a transform between usual ones."""
    name = cls.__name__
    arguments = ARGUMENTS.get(f"{name} {library}", ARGUMENTS.get(name, ""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform = eval(f"cls({arguments})", {"cls": cls, "torch": torch, "X": [H.RandomInvert(), H.RandomInvert()]})
    before: list[Any] = [H.Resize((8, 8))]
    after: list[Any] = [H.CenterCrop(8), H.ToTensor()]
    if name in ON_TENSORS:
        before, after = [*before, H.ToTensor()], []
    return outcome(H.Compose([*before, transform, *([] if name in CONVERTERS else after)]))


def outcome(transform: Any) -> Row:
    """Where a transform runs if all its steps must be native: in memory, and with batches on a device."""
    try:
        recipe = lower(transform, native_only=True, may_vary=True)
    except LoweringError:
        return IN_PYTHON, IN_PYTHON
    fused = destination.Destination(torch.device("cpu"), "fused", destination.EMULATED)
    return NATIVE, NATIVE if device_engine.destination_for(recipe, fused).way == "fused" else BY_CPU


def assert_true(rows: dict[str, Row], found: dict[str, list[type]], library: str) -> None:
    assert not found.keys() - rows.keys(), "the page lacks rows"
    assert not rows.keys() - found.keys(), "the page has rows of transforms that are not there"
    for name, ways in found.items():
        for cls in ways if name != "GaussianBlur" or blur_rule.is_native_blur_exact() else ():
            assert tried(cls, library) == rows[name], f"{cls.__module__}.{name}"


def test_torchvisions(torchvision: ModuleType) -> None:
    """v1's and v2's; those that both have share a row, so both must be what it says."""
    assert_true(table("torchvision"), classes(torchvision.transforms, torchvision.transforms.v2), "torchvision")


def test_headraces_own(torchvision: ModuleType) -> None:
    """Those that torchvision does not have. Those of other libraries' objects have tables of their own."""
    theirs = classes(torchvision.transforms, torchvision.transforms.v2)
    crop = H.Compose([H.CenterCrop(8), H.ToTensor()])
    examples = {
        "ByAspectRatio": H.Compose([H.ByAspectRatio({(8, 8): H.ResizedCenterCrop(8)}), H.ToTensor()]),
        "ResizeToPatches": H.Compose([H.CenterCrop(8), H.ResizeToPatches(4, 6), H.ToTensor()]),
        "ResizedCenterCrop": H.Compose([H.ResizedCenterCrop(8), H.ToTensor()]),
        "TextureChannels": H.Compose([H.CenterCrop(8), H.TextureChannels()]),
        "Views": H.Views([crop, crop]),
    }
    assert examples.keys() == classes(H).keys() - theirs.keys() - {"ProcessorTransform", "AlbumentationsTransform"}
    assert table("headrace") == {name: outcome(transform) for name, transform in examples.items()}


@pytest.mark.slow
def test_timms(torchvision: ModuleType) -> None:
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [importlib.import_module(f"timm.data.{name}") for name in TIMM]
    found = {
        name: [cls for cls in ways if cls.__module__.startswith("timm.data.")]
        for name, ways in classes(*modules).items()
    }
    assert_true(table("timm"), {name: ways for name, ways in found.items() if ways}, "timm")


def test_speeds_are_those_that_were_measured(torchvision: ModuleType) -> None:
    """And what is measured has a row."""
    text = PAGE.read_text()
    assert page.filled(text, page.figures()) == text, "run python -m bench.transforms.page"
    rows = importlib.import_module("bench.transforms.rows").ROWS
    for measured in (rows, page.figures()):
        for heading, some in measured.items():
            assert not some.keys() - table(heading).keys(), "the page lacks rows"


def test_a_column_of_speeds() -> None:
    """Rows of several names have the first one's speed; what was not measured, and rows that are new, get a dash."""
    head = "# Other\n\n| `A` | native | native | |\n\n### torchvision\n\n"
    plain = "| transform | on the CPU | on a device | why |\n|---|---|---|---|\n"
    start, rest = "| `A` | native | native |", "| `B`, `C` | native | CPU |"
    text = f"{head}{plain}{start} |\n{rest} 3 | so |\n| `D` | Python | Python | no |\n"
    rows = {"torchvision": {"C": {"seconds": [[5.0, 2.0], [6.0, 2.0], [9.0, 2.0]]}, "D": {"seconds": [[25.0, 2.0]]}}}
    wide = "| transform | on the CPU | on a device | speed | why |\n|---|---|---|---|---|\n"
    made = f"{start} \u2013 | |\n{rest} 3.0 | so |\n| `D` | Python | Python | 12 | no |\n"
    assert page.filled(text, rows) == page.filled(head + wide + made, rows) == head + wide + made


def processors() -> Iterator[tuple[str, Any]]:
    """Every image processor of transformers that needs no argument, with the name of its class."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torchvision_shim.import_torchvision()
    models = Path(transformers.__file__).parent / "models"
    for path in sorted(models.glob("*/image_processing_*.py")):
        name = f"transformers.models.{path.parent.name}.{path.stem}"
        try:
            module = importlib.import_module(name)
        except ImportError:  # it needs a package that is not installed
            continue
        for cls in vars(module).values():
            if getattr(cls, "__module__", "") == name and re.search(r"ImageProcessor(Pil)?$", cls.__name__):
                with contextlib.suppress(TypeError, OSError):  # it needs arguments
                    yield cls.__name__, cls()


@pytest.mark.slow
@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore")
def test_hugging_faces() -> None:
    """The page names all processors that `from_processor` takes, for each backend."""
    rows = table("Hugging Face")
    names = {name for name, row in rows.items() if row == (NATIVE, NATIVE)}
    taken = set()
    for name, processor in processors():
        try:
            transform = H.from_processor(processor)
        except (TypeError, ValueError):
            continue
        assert outcome(transform) == (NATIVE, NATIVE)
        taken.add(name)
    assert taken == names
