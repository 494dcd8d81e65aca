"""RandomIoUCrop beside deferred images: the same crops and random numbers as torchvision's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headrace._loading.doors import box_crops
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")


def boxes_of(seed: int, *, format: str = "XYXY", dtype: torch.dtype = torch.float32) -> Any:
    corners = torch.rand(4, 2, generator=torch.Generator().manual_seed(seed)) * 30
    values = torch.cat([corners, corners + 12], 1).to(dtype)
    return tv_tensors.BoundingBoxes(values, format=format, canvas_size=(50, 60))  # type: ignore[call-overload, unused-ignore]


def crops(step: Any, boxes: Any) -> list[Any]:
    found = []
    for seed in range(6):
        torch.manual_seed(seed)
        made = step.make_params([tv_tensors.Image(torch.zeros(3, 50, 60)), boxes])
        found.append((repr(made), torch.rand(1).item()))
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"min_scale": 0.7, "max_scale": 0.9}, {"trials": 2}, {"sampler_options": [0.2, 0.45, 1]}, {"max_scale": 1.3}],
)
def test_crops_are_those_of_torchvision(options: dict[str, Any]) -> None:
    for boxes in (
        boxes_of(3),
        boxes_of(4),
        tv_tensors.wrap(boxes_of(5)[:1], like=boxes_of(5)),
        boxes_of(6, dtype=torch.float64),
    ):
        step = v2.RandomIoUCrop(**options)
        expected = crops(step, boxes)
        with deferred_here(ImageCounts()):
            assert crops(step, boxes) == expected


def test_the_search_is_ours() -> None:
    with deferred_here(ImageCounts()):
        plain = v2.RandomIoUCrop.make_params.__wrapped__
        assert box_crops._is_known(plain)
