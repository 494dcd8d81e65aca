"""torch.jit.script of torchvision's transforms and functions, while headrace's versions of them are in their places."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headrace.pillow import open_patch
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import transforms  # noqa: E402 - after the shim
from torchvision.transforms import _functional_tensor as v1  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("open_doors"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*"),  # its class depends on torch
]

SCRIPTED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Resize": (transforms.Resize([9, 8], antialias=True), ()),
    "RandomResizedCrop": (transforms.RandomResizedCrop(9), ()),
    "GaussianBlur": (transforms.GaussianBlur(3), ()),
    "ColorJitter": (transforms.ColorJitter(0.4, 0.4, 0.4, 0.4), ()),
    "Compose": (
        torch.nn.Sequential(
            transforms.Pad([2]), transforms.ConvertImageDtype(torch.float32), transforms.Normalize([0.5], [0.2])
        ),
        (),
    ),
    "v1.adjust_hue": (v1.adjust_hue, (0.2,)),
    "v2.resize": (f2.resize, ([9, 8],)),
    "v2.gaussian_blur": (f2.gaussian_blur, ([3, 3],)),
}


@pytest.mark.parametrize("name", SCRIPTED)
def test_libraries_functions_are_compiled(name: str) -> None:
    scripted, arguments = SCRIPTED[name]
    image = torch.randint(0, 256, (3, 21, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(5)
    expected = scripted(image, *arguments)
    with open_patch.deferred_here(ImageCounts()):
        open_patch.replace_following()
        assert v1.resize.__globals__["__name__"].startswith("headrace.")  # ours is there
        compiled = torch.jit.script(scripted)
        torch.manual_seed(5)
        assert torch.equal(compiled(image, *arguments), expected)
    torch.manual_seed(5)
    assert torch.equal(compiled(image, *arguments), expected)
