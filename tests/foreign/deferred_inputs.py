"""The inputs of torchvision's own tests, each from an image file: read by torchvision, or deferred.

torchvision's `make_image` makes random pixels. Here they are written to a PNG in memory, which keeps their values, and
opened again. What no image file holds stays as it is: batches, videos, masks, alpha, most types. An image of float32
is one of bytes that torchvision scales, in both runs. As a plugin of pytest's, this adds one test, which is that images
were deferred, or that they were not.
"""

from __future__ import annotations

import functools
import importlib
import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import PIL.Image
import pytest
import torch

#: How many images the tests have made, by what they became.
counts: Counter[str] = Counter()
_DEFERRED, _READ = "deferred", "read at once"
_expected = _READ


def install(*, deferred: bool) -> None:
    """Replaces the functions of torchvision's tests that make images.

    Args:
        deferred: whether images are opened by headrace, deferred; or by Pillow.
    """
    global _expected
    _expected = _DEFERRED if deferred else _READ
    if deferred:
        import headrace.pillow
        from headrace._loading.doors import opened_doors, type_checks

        opened_doors.add_doors()
        type_checks.checks.look = lambda: None  # type: ignore[method-assign]  # what `with_equal_types` changes
        headrace.pillow.install()
    common = importlib.import_module("common_utils")
    common.make_image = _through_file(common.make_image)  # type: ignore[attr-defined]
    common._create_data = _first_through_file(common._create_data)  # type: ignore[attr-defined]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Reports the test of the counts: each image that could be from a file was, in the way that was asked for."""
    is_right = counts[_expected] > 0 and {_DEFERRED, _READ}.isdisjoint(counts.keys() - {_expected})
    found = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    report = pytest.TestReport("inputs", ("", None, ""), {}, "passed" if is_right else "failed", found, "call")
    session.config.hook.pytest_runtest_logreport(report=report)


def _through_file(make: Callable[..., Any]) -> Callable[..., Any]:
    """A version of `make_image`."""

    @functools.wraps(make)
    def make_image(*args: Any, **kwargs: Any) -> Any:
        from torchvision.tv_tensors import Image

        image = make(*args, **kwargs)
        opened = _open(image.as_subclass(torch.Tensor))
        return image if opened is None else Image(opened)

    return make_image


def _first_through_file(make: Callable[..., Any]) -> Callable[..., Any]:
    """A version of v1's `_create_data`, which returns a tensor and an image of Pillow's."""

    @functools.wraps(make)
    def create_data(*args: Any, **kwargs: Any) -> Any:
        tensor, image = make(*args, **kwargs)
        opened = _open(tensor)
        return tensor if opened is None else opened, image

    return create_data


def _open(tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns the tensor of an image file that has the values of a tensor; None if no file can."""
    from torchvision.transforms import functional

    reason = _why_none(tensor)
    if reason is not None:
        counts[reason] += 1
        return None
    is_of_bytes = tensor.dtype == torch.uint8
    pixels = (tensor if is_of_bytes else (tensor * 255).round().to(torch.uint8)).permute(1, 2, 0)
    file = io.BytesIO()
    PIL.Image.fromarray((pixels[..., 0] if pixels.shape[-1] == 1 else pixels).numpy()).save(file, "PNG")
    image = PIL.Image.open(file)
    opened = _make_planar(image) if _expected == _READ else _defer_planar(image)
    opened = opened if is_of_bytes else functional.convert_image_dtype(opened, tensor.dtype)
    counts[_DEFERRED if "_recording" in vars(opened) else _READ] += 1
    return opened


def _make_planar(image: PIL.Image.Image) -> torch.Tensor:
    from torchvision.transforms import functional

    return functional.pil_to_tensor(image).contiguous()


def _defer_planar(image: PIL.Image.Image) -> torch.Tensor:
    """As the door of `to_tensor`: the tests want their tensors contiguous."""
    from headrace._loading.doors.image_to_tensor import defer_tensor
    from headrace._loading.doors.tensors.memory_layout import Layout

    deferred = defer_tensor(image, Layout.PLANAR, _make_planar)
    return _make_planar(image) if deferred is None else deferred


def _why_none(tensor: torch.Tensor) -> str | None:
    if tensor.dim() != 3 or tensor.shape[0] not in (1, 3):
        return "batches, and other numbers of channels"
    if tensor.dtype not in (torch.uint8, torch.float32):
        return "other types"
    return "on another device" if tensor.device.type != "cpu" else None
