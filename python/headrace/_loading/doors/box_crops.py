"""torchvision's `RandomIoUCrop`, whose search for a crop takes longer than the pixels do: the same random numbers and
the same float32 arithmetic on the boxes, by numpy.

It is used beside a deferred image, for a few boxes (N, 4) as corners, after a comparison with torchvision's own.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import torch

from headrace._base.types import Array, Function
from headrace._loading.doors.tensors.deferred_tensor import is_deferring_possible
from headrace.pillow.recording.image_counts import in_force
from headrace.pillow.recording.patches import Replacements, Untouched, method

_MODULE = "torchvision.transforms.v2._geometry"
_COMPARED = 8  # searches
_NUMBERS = ("min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio")


def _search_quickly(plain: Function) -> Function:
    @functools.wraps(plain)
    def make_params(self: Any, flat_inputs: list[Any]) -> Any:
        if in_force.here() is None or not is_deferring_possible() or not _parts() or not _are_numbers(self):
            return plain(self, flat_inputs)
        module = sys.modules[_MODULE]
        boxes = _corners_of(module.get_bounding_boxes(flat_inputs)) if _has_boxes(flat_inputs) else None
        if boxes is None or not _is_known(plain):
            return plain(self, flat_inputs)
        return _find_crop(self, module.query_size(flat_inputs), boxes)

    return make_params


def _has_boxes(flat_inputs: list[Any]) -> bool:
    kind = sys.modules["torchvision.tv_tensors"].BoundingBoxes
    return sum(isinstance(one, kind) for one in flat_inputs) == 1


def _are_numbers(step: Any) -> bool:
    numbers = [*(getattr(step, name, None) for name in _NUMBERS), *getattr(step, "options", [None])]
    return type(step.trials) is int and all(type(one) in (int, float) for one in numbers)


def _corners_of(boxes: Any) -> Array | None:
    """Returns float32 boxes (N, 4) of the format XYXY; None for others."""
    if boxes.dtype != torch.float32 or boxes.dim() != 2 or boxes.requires_grad or boxes.device.type != "cpu":
        return None
    if getattr(boxes.format, "name", None) != "XYXY" or torch.get_default_dtype() != torch.float32:
        return None
    found: Array = boxes.as_subclass(torch.Tensor).numpy()
    return found


def _find_crop(step: Any, size: tuple[int, int], boxes: Array) -> dict[str, Any]:
    """Returns the crop that the transform makes, as its `make_params` does."""
    height, width = size
    wide, high = np.float32(width), np.float32(height)
    least_scale, spread = np.float32(step.min_scale), np.float32(step.max_scale - step.min_scale)
    x = np.float32(0.5) * (boxes[:, 0] + boxes[:, 2])
    y = np.float32(0.5) * (boxes[:, 1] + boxes[:, 3])
    with np.errstate(all="ignore"):
        while True:
            least = step.options[int(torch.randint(low=0, high=len(step.options), size=(1,)))]
            if least >= 1.0:
                return {}
            for _ in range(step.trials):
                share = least_scale + spread * torch.rand(2).numpy()
                new_width, new_height = int(wide * share[0]), int(high * share[1])
                if not (step.min_aspect_ratio <= new_width / new_height <= step.max_aspect_ratio):
                    continue
                share = torch.rand(2).numpy()
                left = int(np.float32(width - new_width) * share[0])
                top = int(np.float32(height - new_height) * share[1])
                right, bottom = left + new_width, top + new_height
                if left == right or top == bottom:
                    continue
                inside = (left < x) & (x < right) & (top < y) & (y < bottom)
                if not inside.any():
                    continue
                if _overlaps(boxes[inside], left, top, right, bottom).max() < np.float32(least):
                    continue
                mask = torch.from_numpy(inside)
                return {
                    "top": top,
                    "left": left,
                    "height": new_height,
                    "width": new_width,
                    "is_within_crop_area": mask,
                }


def _overlaps(boxes: Array, left: int, top: int, right: int, bottom: int) -> Array:
    """Returns intersection over union of boxes and a crop, as torchvision's `box_iou`."""
    x0, y0, x1, y1 = (np.float32(edge) for edge in (left, top, right, bottom))
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    width = np.maximum(np.minimum(boxes[:, 2], x1) - np.maximum(boxes[:, 0], x0), np.float32(0))
    height = np.maximum(np.minimum(boxes[:, 3], y1) - np.maximum(boxes[:, 1], y0), np.float32(0))
    common = width * height
    made: Array = common / (area + (x1 - x0) * (y1 - y0) - common)
    return made


@functools.cache
def _parts() -> Untouched:
    """What torchvision's search calls."""
    module: Any = sys.modules[_MODULE]
    names = ("box_iou", "query_size", "get_bounding_boxes")
    functional = sys.modules["torchvision.transforms.v2.functional"]
    places: list[tuple[object, str]] = [(module, name) for name in names]
    return Untouched(*places, (functional, "convert_bounding_box_format"), (torch, "rand"), (torch, "randint"))


@functools.cache
def _is_known(plain: Function) -> bool:
    """Whether torchvision's own search finds the same crops and takes as many random numbers."""
    tv_tensors: Any = sys.modules["torchvision.tv_tensors"]
    step = sys.modules[_MODULE].RandomIoUCrop()  # type: ignore[attr-defined, unused-ignore]
    state = torch.random.get_rng_state()
    try:
        for seed in range(_COMPARED):
            torch.default_generator.manual_seed(seed)
            corners = torch.rand(4, 2) * 150
            values = torch.cat([corners, corners + 5 + torch.rand(4, 2) * 100], 1)
            boxes = tv_tensors.BoundingBoxes(values, format="XYXY", canvas_size=(230, 270))
            found = []
            for search in (plain, None):
                torch.default_generator.manual_seed(seed)
                made = _find_crop(step, (230, 270), values.numpy()) if search is None else search(step, [boxes])
                found.append((repr(made), torch.rand(1).item()))
            if found[0] != found[1]:
                return False
    finally:
        torch.random.set_rng_state(state)
    return True


STEPS: Replacements = Replacements([method(_MODULE, "RandomIoUCrop", "make_params", _search_quickly)])
