"""Batches of torch's default_collate in the main process, where making one takes as long as copying its values.

torch turns each array into a tensor and stacks these. Here the arrays of a batch are copied by one call of NumPy, and
the tuples and dicts that have them are taken apart. All other batches are torch's own function's, and so is what raises
an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import collate

from headrace.pillow.recording.patches import Untouched

MOST = 1 << 18  # bytes of a batch; a larger one takes longer to copy twice than torch takes
_DTYPES: frozenset[np.dtype[Any]] = frozenset(
    torch.empty(0, dtype=one).numpy().dtype
    for one in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
)
_LEAVES = frozenset((torch.Tensor, int, float, str, bytes))
_TORCHS_KINDS: dict[Any, Any] = dict(collate.default_collate_fn_map)


def _look() -> tuple[Any, ...]:
    """Returns the code of what is done here instead."""
    functions = collate.default_collate, collate.collate, collate.collate_numpy_array_fn, collate.collate_tensor_fn
    return *(one.__code__ for one in functions), torch.stack, torch.as_tensor


_AS_TORCH_HAS_IT: tuple[Any, ...] | None = (
    _look()
    if Untouched(
        *((collate, name) for name in ("default_collate", "collate", "collate_numpy_array_fn", "collate_tensor_fn")),
        (torch, "stack"),
        (torch, "as_tensor"),
    )
    else None
)


def collate_plainly(batch: Any) -> Any:
    """Returns what `torch.utils.data.default_collate` returns."""
    if _has_arrays(batch) and _is_torchs():
        with contextlib.suppress(Exception):  # raised again by torch's function
            return _collate(batch)
    return default_collate(batch)


def _has_arrays(batch: Any) -> bool:
    """Whether the first sample is an array, or has some."""
    first = batch[0]
    kind = type(first)
    if kind is tuple or kind is list:
        return np.ndarray in map(type, first)
    return kind is np.ndarray or (kind is dict and np.ndarray in map(type, first.values()))


def _is_torchs() -> bool:
    """Whether nothing of a program's own would be called."""
    try:
        return (
            _look() == _AS_TORCH_HAS_IT
            and (collate.default_collate_fn_map == _TORCHS_KINDS or _has_only_our_kinds())
            and torch._C._len_torch_function_stack() == 0
            and torch._C._len_torch_dispatch_stack() == 0
            and not torch.is_inference_mode_enabled()
        )
    except AttributeError:  # what has no code
        return False


def _has_only_our_kinds() -> bool:
    """Whether the only classes that were added to torch's are headrace's."""
    now = collate.default_collate_fn_map
    theirs = {
        kind: one for kind, one in now.items() if not str(getattr(kind, "__module__", "")).startswith("headrace.")
    }
    return theirs == _TORCHS_KINDS


def _collate(batch: Sequence[Any]) -> Any:
    first = batch[0]
    kind = type(first)
    if kind is np.ndarray:
        made = _stack_arrays(batch)
        return collate.collate(batch, collate_fn_map=collate.default_collate_fn_map) if made is None else made
    if kind in _LEAVES:
        return collate.default_collate_fn_map[kind](batch, collate_fn_map=collate.default_collate_fn_map)
    if (kind is tuple or kind is list) and _are_all(batch, kind):
        return [_collate(values) for values in zip(*batch, strict=True)]  # or ValueError
    if kind is dict and _are_all(batch, kind):
        return {key: _collate([one[key] for one in batch]) for key in first}
    return collate.collate(batch, collate_fn_map=collate.default_collate_fn_map)


def _are_all(batch: Sequence[Any], kind: type) -> bool:
    return set(map(type, batch)) == {kind}


def _stack_arrays(arrays: Sequence[Any]) -> torch.Tensor | None:
    """Returns the arrays as one tensor; None unless all are contiguous, and of one shape and type."""
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if dtype not in _DTYPES or not shape or not 0 < arrays[0].nbytes * len(arrays) <= MOST:
        return None
    for one in arrays:
        if type(one) is not np.ndarray or one.dtype is not dtype or one.shape != shape or not one.flags.carray:
            return None
    if 1 in shape and any(one.strides != np.empty(shape, dtype).strides for one in arrays):  # torch refuses some
        return None
    joined = np.concatenate(arrays).reshape(len(arrays), *shape)
    return torch.from_numpy(joined).clone()  # to memory of torch's, which can be resized
