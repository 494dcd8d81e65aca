"""ToDtype: converts tensors to another dtype, with the same torch operations as torchvision."""

from __future__ import annotations

import warnings
from functools import partial

import torch

from headrace._recipe.images.part_kinds import Kind, kind_of, map_values, tv_class
from headrace.transforms._base import Params, Transform


class ToDtype(Transform):
    """Converts tensors to `dtype`; all other parts pass unchanged.

    Args:
        dtype: dtype of images and videos; or a dict of class to dtype, with "others" for all classes that it does not
            name, and None for no conversion. A tensor made by ToImage has the class ``tv_tensors.Image`` if torchvision
            is loaded, otherwise it falls under "others".
        scale: whether to rescale values: the range of an integer dtype corresponds to [0, 1] of a float dtype.

    Raises:
        ValueError: `dtype` is neither a torch.dtype nor a dict. When called: the dict has no entry for a part's class.
        RuntimeError: when called, if a float dtype is too imprecise for a scaled conversion, such as float32 to int64.
        TypeError: when called, for a scaled conversion between bool and an integer dtype.
    """

    _transformed_types = (torch.Tensor,)

    def __init__(self, dtype: torch.dtype | dict[type | str, torch.dtype | None], scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, torch.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        if isinstance(dtype, dict) and torch.Tensor in dtype and {tv_class("Image"), tv_class("Video")} & dtype.keys():
            warnings.warn(
                "Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image` or `tv_tensors.Video`. A plain "
                "`torch.Tensor` is not converted in a sample that holds an image or a video.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: torch.Tensor, params: Params) -> torch.Tensor:
        kind = kind_of(inpt)
        of_pixels = kind in (Kind.PURE, Kind.IMAGE, Kind.VIDEO)
        if not isinstance(self.dtype, dict):
            return map_values(partial(convert_dtype, dtype=self.dtype, scale=self.scale), inpt) if of_pixels else inpt
        dtype = self._dtype_for(inpt, self.dtype)
        if dtype is None:
            if self.scale and of_pixels:
                warnings.warn(
                    "scale was set to True but no dtype was specified for images or videos: no scaling will be done.",
                    stacklevel=2,
                )
            return inpt
        if of_pixels:
            return map_values(partial(convert_dtype, dtype=dtype, scale=self.scale), inpt)
        return inpt if kind is Kind.OWN else inpt.to(dtype)

    @staticmethod
    def _dtype_for(inpt: object, dtypes: dict[type | str, torch.dtype | None]) -> torch.dtype | None:
        """Returns the dtype that `dtypes` gives for the type of `inpt`, or else for "others"; None: no change."""
        made_by_to_image = type(inpt) is torch.Tensor and kind_of(inpt) is Kind.IMAGE
        cls = tv_class("Image") if made_by_to_image else type(inpt)
        for key in (cls, "others"):
            if key in dtypes:
                return dtypes[key]
        raise ValueError(
            f"No dtype was specified for {'an image made by ToImage' if made_by_to_image else f'type {cls}'}. Add one "
            'to the dict, or "others": None to leave other types unchanged; a torch.dtype instead of a dict converts '
            "images and videos only."
        )


def convert_dtype(image: torch.Tensor, dtype: torch.dtype, scale: bool) -> torch.Tensor:
    """Returns the image converted to `dtype`, or the image itself if it has that dtype."""
    source = image.dtype
    if source == dtype:
        return image
    if not scale or (source.is_floating_point and dtype.is_floating_point):
        return image.to(dtype)
    if source.is_floating_point:
        if (source, dtype) in ((torch.float32, torch.int32), (torch.float32, torch.int64)) or (
            (source, dtype) == (torch.float64, torch.int64)
        ):
            raise RuntimeError(f"The conversion from {source} to {dtype} cannot be performed safely.")
        # + 1 - 1e-3: every integer gets an interval of nearly equal length, and 1.0 maps to the largest one.
        return image.mul(float(_largest_value(dtype)) + 1.0 - 1e-3).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype).mul_(1.0 / _largest_value(source))
    shift = _bits_of_values(dtype) - _bits_of_values(source)
    # torch does not shift uint16.
    if shift < 0:
        return (image / 2**-shift if source == torch.uint16 else image.bitwise_right_shift(-shift)).to(dtype)
    return image.to(dtype) * 2**shift if dtype == torch.uint16 else image.to(dtype).bitwise_left_shift_(shift)


_LARGEST = {
    dtype: torch.iinfo(dtype).max
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64)
}


def _largest_value(dtype: torch.dtype) -> int:
    return _LARGEST.get(dtype, 1)


def _bits_of_values(dtype: torch.dtype) -> int:
    if dtype not in _LARGEST:
        raise TypeError(f"Number of value bits is only defined for integer dtypes, but got {dtype}.")
    return _LARGEST[dtype].bit_length()
