"""The resize and the crop of an image processor as steps of a recipe, with the rounding of its backend."""

from __future__ import annotations

import operator
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._recipe.hf_processors.recognition import CALL_IT, backend_of, model_of

Geometry = S.Resize | S.ResizeShorter | S.CenterCrop

#: From this shorter edge on, ConvNeXT's processor resizes to a square instead of cropping one.
_WARPED = 384

_BY_NUMBER = {number: name for name, number in S.FILTERS.items()}


def steps_of(processor: Any) -> list[Geometry]:
    """Returns what the processor does to an RGB image, or one of mode L, before it maps the values.

    Raises:
        TypeError: the processor is not recognised.
        ValueError: it has a setting that has no native twin.
    """
    backend = backend_of(processor)
    if getattr(processor, "do_pad", None):
        raise ValueError(
            f"do_pad=True pads the finished values, which has no native twin; pass do_pad=False or {CALL_IT}"
        )
    device = getattr(processor, "device", None)
    if device is not None and str(device) != "cpu":
        raise ValueError(f"device={device!s} moves each image; leave it out and pass device= to the DataLoader")
    steps = _resize_steps(processor, backend) if processor.do_resize else []
    if processor.do_center_crop and model_of(processor) != "segformer":
        steps.append(
            _crop_steps(
                _checked_edge(processor.crop_size, "height"), _checked_edge(processor.crop_size, "width"), backend
            )
        )
    return steps


def _resize_steps(processor: Any, backend: str) -> list[Geometry]:
    size, filter = processor.size, _filter(processor, backend)
    shorter = getattr(size, "shortest_edge", None)
    if model_of(processor) == "convnext":
        edge = _checked_edge(size, "shortest_edge")
        if edge >= _WARPED:
            return [S.Resize(edge, edge, filter)]
        return [S.ResizeShorter(int(edge / processor.crop_pct), None, filter), _crop_steps(edge, edge, backend)]
    if shorter and not size.longest_edge:
        return [S.ResizeShorter(_checked_edge(size, "shortest_edge"), None, filter)]
    if shorter or (size.max_height and size.max_width):
        raise ValueError(
            f"size={_as_dict(size)} limits the longer edge by rules that have no native twin; use a size of height and "
            f"width, or of shortest_edge alone, or {CALL_IT}"
        )
    return [S.Resize(_checked_edge(size, "height"), _checked_edge(size, "width"), filter)]


def _crop_steps(height: int, width: int, backend: str) -> S.CenterCrop:
    return S.CenterCrop(height, width, rounding="towards_zero" if backend == "torchvision" else "down")


def _filter(processor: Any, backend: str) -> str:
    resample = "bilinear" if processor.resample is None else processor.resample
    given: Any = getattr(resample, "value", resample)
    name = _BY_NUMBER.get(given, given)
    if backend == "pil" and name in S.FILTERS:
        return str(name)
    if backend == "torchvision" and f"tensor_{name}" in S.TENSOR_FILTERS:
        return f"tensor_{name}"
    raise ValueError(
        f"resample={name} of the {backend} backend has no native twin; use bilinear or bicubic, or one of Pillow's "
        f'filters with backend="pil" in AutoImageProcessor.from_pretrained, or {CALL_IT}'
    )


def _checked_edge(size: object, name: str) -> int:
    value = getattr(size, name, None)
    if not value or operator.index(value) < 1:
        raise ValueError(f"size={_as_dict(size)} needs {name}, a positive number of pixels")
    return operator.index(value)


def _as_dict(size: object) -> object:
    return (
        {name: value for name, value in vars(size).items() if value is not None} if hasattr(size, "__dict__") else size
    )
