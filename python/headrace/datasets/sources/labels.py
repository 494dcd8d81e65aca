"""Collates the labels of a batch as torch does, and names the samples whose labels cannot be collated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate

from headrace._base.safe_exceptions import contextmanager, is_instance, message_of

_in_worker: ContextVar[bool] = ContextVar("in_worker", default=False)
_KINDS = (TypeError, RuntimeError, ValueError, KeyError)


def collate(labels: tuple[object, ...], indices: Sequence[int], location: Callable[[int], str]) -> object:
    """Returns ``default_collate(labels)``.

    Args:
        labels: the labels of the samples `indices`. A tuple, because ``default_collate`` returns strings in the
            container they came in, and collating whole samples returns a tuple.
        indices: the samples' indices, for messages.
        location: maps an index to where the sample is stored, for messages.

    Raises:
        TypeError, RuntimeError, ValueError, KeyError: as torch does. The message names the first label that cannot be
            batched, or that does not stack with the first one.
    """
    batch: Any = labels
    try:
        if _in_worker.get() and isinstance(batch[0], (torch.Tensor, np.ndarray)):
            return _stack_as_in_worker(batch)
        return default_collate(batch)
    except Exception as error:
        _raise_explained(error, labels, indices, location)


def whole_numbers(labels: Any, *, alone: bool) -> npt.NDArray[np.int64] | None:
    """Returns labels as one int64 array, if default_collate makes an int64 tensor of any of them; otherwise None.

    Args:
        labels: a list or array of them.
        alone: whether only Python's and numpy's int64 count; otherwise numpy's numbers of other widths do, too.
    """
    if isinstance(labels, np.ndarray):
        kinds: set[type] = {labels.dtype.type} if labels.ndim == 1 else set()
    else:
        try:
            kinds = set(map(type, labels))
        except TypeError:  # not iterable
            return None
    if not kinds or not all(one is int or (issubclass(one, np.int64 if alone else np.integer)) for one in kinds):
        return None
    if alone and len(kinds) > 1:  # the first label of a batch decides
        return None
    try:
        array = np.asarray(labels)
    except (OverflowError, ValueError):
        return None
    if array.dtype.kind not in "iu" or array.ndim != 1 or int(array.max()) >= 2**63:
        return None
    return array.astype(np.int64, copy=False)


@contextmanager
def as_in_workers() -> Iterator[None]:
    """While active, `collate` returns what default_collate does in torch's worker processes."""
    token = _in_worker.set(True)
    try:
        yield
    finally:
        _in_worker.reset(token)


def _stack_as_in_worker(labels: Any) -> object:
    """Returns ``default_collate(labels)`` as in a worker process, where tensors get the dtype of the first one; in the
    main process they get the one that all promote to."""
    try:
        tensors = [torch.as_tensor(one) for one in labels]
        alike = all(one.dtype == tensors[0].dtype for one in tensors)
    except Exception:  # default_collate says what is wrong
        alike = True
    if alike:
        return default_collate(labels)
    first = tensors[0]
    return torch.stack(tensors, 0, out=first.new_empty((len(tensors), *first.shape)))


def move_to_default_device(numbers: torch.Tensor) -> torch.Tensor:
    """Returns `numbers` on torch's default device, where ``default_collate`` puts a tensor of numbers."""
    device = torch.get_default_device()
    return numbers if device.type == "cpu" else numbers.to(device)


def _raise_explained(
    error: Exception, labels: tuple[object, ...], indices: Sequence[int], location: Callable[[int], str]
) -> NoReturn:
    def name_sample(place: int) -> str:
        return f"sample {indices[place]} ({location(indices[place])})"

    kind = next((one for one in _KINDS if is_instance(error, one)), None)
    if kind is None:
        raise error
    for place, label in enumerate(labels):
        if not _can_be_collated((label,)):
            raise kind(
                f"the label of {name_sample(place)} is {_label_shape(label)}, which default_collate cannot batch: "
                f"{message_of(error)}"
            ) from error
        if not _can_be_collated((labels[0], label)):
            raise kind(
                f"the labels of {name_sample(0)} and {name_sample(place)} do not stack: {_label_shape(labels[0])} and "
                f"{_label_shape(label)}; give all samples labels of one kind and shape"
            ) from error
    raise error


def _can_be_collated(labels: Any) -> bool:
    try:
        default_collate(labels)
    except Exception:
        return False
    return True


def _label_shape(label: object) -> str:
    """Describes a label for a message: its type and its shape, keys, length or value."""
    name = type(label).__name__
    if hasattr(label, "shape"):
        return f"{name} {tuple(label.shape)}"
    if isinstance(label, Mapping):
        return f"{name} with the keys {', '.join(map(repr, label))}"
    if isinstance(label, Sequence) and not isinstance(label, (str, bytes)):
        return f"{name} of {len(label)}"
    return f"{name} {label!r:.40}"
