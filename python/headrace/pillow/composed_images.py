"""Consecutive transforms of torchvision's `Compose` of one deferred image of Pillow's, recorded together.

Each transform is a module, which calls functions of torchvision's, which call methods of Pillow's, which record what
they would do. Between two images that are decoded the caches have forgotten this code, so it takes three times as long
as in a loop of its own. Here the transforms' random numbers, by torch's own functions, are followed by the record.
What stands between, of the known versions of torchvision, is looked at before: a transform, a function or a hook of the
program's is called as torch calls it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from PIL import Image

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace.pillow.deferred_image import find_recording
from headrace.pillow.recording.lazy_core import MOST_PIXELS, LazyCore, Operation
from headrace.pillow.recording.patches import Untouched, code_below_patch
from headrace.pillow.value_tables import are_modules_watched, is_as_made

_V1 = "torchvision.transforms.transforms"
_TRIES = 10  # of RandomResizedCrop.get_params
_EXACT = 1 << 24
_LEAST = 2.0**-100  # smaller numbers may become 0 in a comparison: torch.set_flush_denormal
#: Given a transform and the size of its image: what it does, and the size after it. None: nothing was drawn, and the
#: transform is called.
_Change: TypeAlias = "Callable[[Any, tuple[int, int]], tuple[tuple[Operation, ...], tuple[int, int]] | None]"
_FLIPPED = (("transpose", Image.Transpose.FLIP_LEFT_RIGHT),)
_logarithms: BoundedTable[tuple[float, float], tuple[float, float]] = BoundedTable(64)


def record_steps(image: Image.Image, steps: Sequence[Any], first: int) -> tuple[Image.Image, int] | None:
    """Calls some transforms from `first` on with a deferred image that has been read.

    Returns:
        The result, and the number of the transforms; None if the first one is not known.
    """
    changes = _changes_of(steps, first)
    if not changes or type(image) is not Image.Image or not _is_plain():
        return None
    lazy = find_recording(image)
    recorded = None if lazy is None else lazy.get_recording()
    size = image.size
    if recorded is None or min(size) < 1:
        return None
    maker, operations = recorded
    added: tuple[Operation, ...] = ()
    done = 0
    for change in changes:
        changed = change(steps[first + done], size)
        if changed is None:
            break
        more, size = changed
        added, done = added + more, done + 1
    if not added:  # as after a flip that returns its image
        return (image, done) if done else None
    made: Any = LazyCore(maker, image.mode, size, operations + added)
    return image._new(made), done


def _changes_of(steps: Sequence[Any], first: int) -> list[_Change]:
    """Returns what the first of the transforms do, as far as that is known."""
    found: list[_Change] = []
    kinds = []
    for at in range(first, len(steps)):
        step = steps[at]
        kind = type(step)
        known = _KNOWN.get(kind.__qualname__) if kind.__module__ == _V1 else None
        if known is None or not is_as_made(step):
            break
        found.append(known)
        kinds.append(kind)
    return found if found and _make_untouched(tuple(kinds)) else []


def _is_plain() -> bool:
    """Whether nothing of a program's own is called by torch's functions and modules."""
    return (
        torch._C._len_torch_function_stack() == 0
        and torch._C._len_torch_dispatch_stack() == 0
        and torch.get_default_dtype() is torch.float32
        and not are_modules_watched()
    )


def _crop_and_resize(step: Any, of: tuple[int, int]) -> tuple[tuple[Operation, ...], tuple[int, int]] | None:
    size, scale, ratio, mode = step.size, step.scale, step.ratio, step.interpolation
    module = sys.modules[_V1]
    resample = module.F.pil_modes_mapping.get(mode) if type(mode) is module.InterpolationMode else None
    if resample is None or not (_are_edges(size) and are_ranges(scale, ratio)):
        return None
    width, height = of
    most = Image.MAX_IMAGE_PIXELS  # Pillow looks at the size of each crop
    if most is not None and width * height > most:
        return None
    logarithms = _logarithms.find_or_make(tuple(ratio), lambda: tuple(torch.log(torch.tensor(ratio)).tolist()))
    top, left, rows, columns = draw_box(width, height, scale, ratio, logarithms)
    crop, resized = ("crop", (left, top, left + columns, top + rows)), (size[1], size[0])
    if resized == (columns, rows):
        return (crop,), resized
    return (crop, ("resize", resized, resample, (0, 0, columns, rows))), resized


def _are_edges(size: Any) -> bool:
    """Whether images of this size are recorded."""
    if type(size) not in (tuple, list) or len(size) != 2:
        return False
    rows, columns = size
    return type(rows) is int and type(columns) is int and min(rows, columns) > 0 and rows * columns <= MOST_PIXELS


def are_ranges(scale: Any, ratio: Any) -> bool:
    """Whether these are what `draw_box` takes, and torch would not complain of."""
    for values in (scale, ratio):
        if type(values) not in (tuple, list) or len(values) != 2 or not {float, int}.issuperset(map(type, values)):
            return False
        if not 0 <= values[0] <= values[1] < math.inf:
            return False
    return bool(ratio[0] > 0)


def draw_box(
    width: int, height: int, scale: Sequence[float], ratio: Sequence[float], logarithms: Sequence[float]
) -> tuple[int, int, int, int]:
    """Draws (top, left, height, width) as torchvision's `RandomResizedCrop` does, by the same calls of the generator.

    Args:
        logarithms: of the ratios, in float32, which is torch's default dtype.
    """
    area = height * width
    low, high = logarithms
    drawn = torch.empty(1)
    for _ in range(_TRIES):
        target = area * drawn.uniform_(scale[0], scale[1]).item()
        aspect = drawn.uniform_(low, high).exp_().item()
        columns = round(math.sqrt(target * aspect))
        rows = round(math.sqrt(target / aspect))
        if 0 < columns <= width and 0 < rows <= height:
            # torch draws an integer from as many bits, whatever its type is; float32 has those below 2^24.
            number = drawn if max(width, height) < _EXACT else torch.empty(1, dtype=torch.int64)
            top = number.random_(0, height - rows + 1).item()
            return int(top), int(number.random_(0, width - columns + 1).item()), rows, columns
    own = float(width) / float(height)
    columns, rows = width, height
    if own < min(ratio):
        rows = round(width / min(ratio))
    elif own > max(ratio):
        columns = round(height * max(ratio))
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def _flip(step: Any, of: tuple[int, int]) -> tuple[tuple[Operation, ...], tuple[int, int]]:
    drawn, p = torch.rand(1), step.p
    bound = _in_float32(p) if type(p) in (float, int) else None
    flips = drawn < p if bound is None else drawn.item() < bound
    return (_FLIPPED if flips else ()), of


@functools.lru_cache(maxsize=64)
def _in_float32(value: float) -> float | None:
    """Returns what torch compares a float32 with; None for numbers that it may treat in ways of its own."""
    return torch.tensor(value, dtype=torch.float32).item() if _LEAST <= value <= 1 or value == 0 else None


_KNOWN: dict[str, _Change] = {"RandomResizedCrop": _crop_and_resize, "RandomHorizontalFlip": _flip}
#: The names that the known versions of torchvision's methods refer to.
_NAMES = {
    ("RandomResizedCrop", "forward"): "F get_params resized_crop ratio scale size interpolation antialias",
    ("RandomResizedCrop", "get_params"): (
        "F get_dimensions torch log tensor range empty uniform_ item exp int round math sqrt randint float min max"
    ),
    ("RandomHorizontalFlip", "forward"): "torch rand p F hflip",
}
_METHODS = ("__call__", "forward", "get_params", "_wrapped_call_impl", "_call_impl", "_slow_forward")
_FUNCTIONALS = ("get_dimensions", "resized_crop", "crop", "resize", "hflip", "_log_api_usage_once", "_is_pil_image")
_OF_PILLOW = ("get_dimensions", "crop", "resize", "hflip", "_is_pil_image")
_OF_IMAGES = (
    *("crop", "_crop", "resize", "transpose", "load", "copy", "_new", "_copy_info", "getbands", "size", "mode"),
    *("width", "height"),
)
#: What draws call.
OF_DRAWS: tuple[tuple[object, str], ...] = (
    *((torch, name) for name in ("empty", "exp", "randint", "rand")),
    *((torch.Tensor, name) for name in ("uniform_", "item", "random_", "exp_", "__lt__", "__bool__")),
)


@functools.lru_cache(maxsize=64)
def _make_untouched(kinds: tuple[type, ...]) -> Untouched | bool:
    """Returns the functions that are not called; False where those of another version would be."""
    module = sys.modules[_V1]
    functionals, of_pillow = module.F, sys.modules["torchvision.transforms._functional_pil"]
    for kind in kinds:
        for (name, method), names in _NAMES.items():
            if name == kind.__name__ and set(code_below_patch(kind, method).co_names) != set(names.split()):
                return False
    places: list[tuple[object, str]] = [(kind, name) for kind in kinds for name in _METHODS if hasattr(kind, name)]
    places += [(module, "F"), (module, "InterpolationMode"), (Image, "_decompression_bomb_check")]
    places += [(functionals, name) for name in _FUNCTIONALS if hasattr(functionals, name)]
    places += [(of_pillow, name) for name in _OF_PILLOW if hasattr(of_pillow, name)]
    places += [(Image.Image, name) for name in _OF_IMAGES if hasattr(Image.Image, name)]
    return Untouched(*places, *OF_DRAWS, (torch, "log"), (torch, "tensor"))
