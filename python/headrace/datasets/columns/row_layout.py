"""One array of a `Columns` dataset, checked, and the layout of the rows of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headrace._base.types import Array

# numpy has no bfloat16 or float8, so a tensor is seen as integers of the same size. A complex128 has 16 bytes.
_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}


@dataclass(frozen=True)
class RowLayout:
    """Names, dtypes and shapes of the values of one sample.

    Attributes:
        row_bytes: size of each value.
    """

    names: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    shapes: tuple[tuple[int, ...], ...]
    row_bytes: tuple[int, ...]

    def __str__(self) -> str:
        parts = zip(self.names, self.dtypes, self.shapes, strict=True)
        return ", ".join(f"{name}: {str(dtype).removeprefix('torch.')} {shape}" for name, dtype, shape in parts)


@dataclass(frozen=True)
class Column:
    """An array whose first axis counts samples.

    Attributes:
        raw: a view of the array, in its own dtype or in one of the same size.
        dtype: dtype of the samples' tensors.
    """

    name: str
    raw: Array
    dtype: torch.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return self.raw.shape[1:]

    def row(self, index: int) -> torch.Tensor:
        """Returns a copy of one row."""
        return torch.from_numpy(np.array(self.raw[index], order="C")).view(self.dtype)

    def rows(self, indices: Sequence[int]) -> torch.Tensor:
        """Returns a copy of several rows, (n, ...)."""
        return torch.from_numpy(np.ascontiguousarray(self.raw[np.asarray(indices, dtype=np.int64)])).view(self.dtype)

    def beginning(self, index: int, elements: int) -> bytes:
        """Returns the bytes of the first elements of a row."""
        return np.asarray(self.raw[index]).flat[:elements].tobytes()


def layout_of(columns: Sequence[Column]) -> RowLayout:
    """Returns the layout of the rows of `columns`."""
    return RowLayout(
        tuple(one.name for one in columns),
        tuple(one.dtype for one in columns),
        tuple(one.shape for one in columns),
        tuple(one.raw.itemsize * int(np.prod(one.shape, dtype=np.int64)) for one in columns),
    )


def check_column(name: object, value: object) -> Column:
    """Returns an array as a column, without copying it.

    Raises:
        TypeError: the name is not a string, or the value is not an array that torch can hold.
        ValueError: the array has no axis.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a column is a string, not {name!r}")
    if isinstance(value, torch.Tensor):
        column = _convert_tensor(name, value)
    elif isinstance(value, np.ndarray):
        column = _convert_array(name, value)
    else:
        raise TypeError(
            f"column {name!r} is a {type(value).__name__}; give a numpy array (numpy.asarray(...)) or a CPU tensor"
        )
    if not column.raw.ndim:
        raise ValueError(f"column {name!r} is a single value; its first axis has to count the samples")
    return column


def _convert_tensor(name: str, tensor: torch.Tensor) -> Column:
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_quantized:
        kind = "quantized" if tensor.is_quantized else str(tensor.layout)
        raise TypeError(
            f"column {name!r} is a {kind} tensor on {tensor.device}; a dense one in this machine's memory is needed"
        )
    if tensor.is_conj() or tensor.is_neg():
        raise TypeError(f"column {name!r} is a view whose values are computed at access; give its .clone()")
    plain = tensor.detach().as_subclass(torch.Tensor)
    return Column(name, plain.view(_SAME_SIZE[plain.itemsize]).numpy(), plain.dtype)


def _convert_array(name: str, array: Array) -> Column:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"column {name!r} is a masked array, and tensors have no masks; give its .filled(value)")
    try:
        dtype = torch.from_numpy(np.empty(0, dtype=array.dtype)).dtype
    except (TypeError, ValueError):  # a foreign byte order is a ValueError
        raise TypeError(f"column {name!r} has dtype {array.dtype}, which torch has no tensor of; convert it") from None
    # A view: while it exists, numpy refuses to resize, and so to move, the array's memory.
    return Column(name, np.asarray(array)[...], dtype)
