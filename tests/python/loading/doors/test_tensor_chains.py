"""Chains of functions on deferred tensors: values, types, strides, errors, and random numbers are torch's."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tensor_chains import Step, apply_chain, make_step

from headrace._loading.doors.tensors.deferred_tensor import Deferred
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

#: More of them, outside of the daily run: HEADRACE_CHAINS=20000.
CHAINS = int(os.environ.get("HEADRACE_CHAINS", "400"))


def open_tensor(path: Path, kind: str) -> Any:
    with Image.open(path) as image:
        converted = image.convert("L") if kind.startswith("gray") else image.convert("RGB")
        tensor = v1.to_tensor(converted) if kind.endswith("floats") else v1.pil_to_tensor(converted)
    return tv_tensors.Image(tensor) if kind == "image" else tensor


def run(path: Path, kind: str, steps: list[Step], looks: int) -> list[Any]:
    torch.manual_seed(7)
    return apply_chain(open_tensor(path, kind), steps, looks)


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "one.jpg"
    draw = random.Random(4)
    image = Image.frombytes("RGB", (12, 9), draw.randbytes(12 * 9 * 3)).resize((61, 47), Image.Resampling.BICUBIC)
    image.save(path, quality=90)
    return path


@pytest.mark.parametrize("part", range(8))
def test_chains_are_equal(photo: Path, part: int) -> None:
    deferred = 0
    for number in range(part, CHAINS, 8):
        draw = random.Random(number)
        kind = draw.choice(["plain", "image", "plain", "image", "gray", "floats", "gray floats"])
        steps = [make_step(draw) for _ in range(draw.randint(1, 5))]
        looks = draw.getrandbits(5) if draw.random() < 0.3 else 0
        expected = run(photo, kind, steps, looks)
        with deferred_here(ImageCounts()):
            deferred += isinstance(open_tensor(photo, kind), Deferred)
            found = run(photo, kind, steps, looks)
        assert found == expected, f"chain {number} of {kind}: {[name for name, _ in steps]}"
    assert deferred == len(range(part, CHAINS, 8))


@pytest.mark.parametrize("kind", ["plain", "image"])
def test_results_are_instances_of_the_class_of_a_deferred_tensor(photo: Path, kind: str) -> None:
    """As torchvision's own tests ask, of results that have values."""
    with deferred_here(ImageCounts()):
        tensor = open_tensor(photo, kind)
        blurred = v2.functional.gaussian_blur(open_tensor(photo, kind), [3, 3])
        assert isinstance(tensor, Deferred) and not isinstance(blurred, Deferred)
        assert isinstance(blurred, type(tensor))
        assert not isinstance(tv_tensors.Mask(torch.zeros(1, 2, 2)), type(open_tensor(photo, "image")))
        assert not isinstance(3, type(tensor))
        assert pickle.loads(pickle.dumps(type(tensor))) is type(blurred)
