"""Versions of torchvision's functions for image tensors, v1's and v2's, that record deferred tensors."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace._base.types import Function
from headrace._loading.doors.tensors.colour_functions import COLOURS, record_gray, recorder_of
from headrace._loading.doors.tensors.deferred_tensor import (
    Deferred,
    DeferredTensor,
    defer,
    is_deferring_possible,
    make,
    recording_of,
)
from headrace._loading.doors.tensors.padded_copies import record_pad, record_pad_of_v1
from headrace._loading.doors.tensors.recorded_functions import (
    part_of,
    record_finish,
    record_flip,
    record_values,
)
from headrace._loading.doors.tensors.recording import Erasing, Recording, State, ValueStep
from headrace._loading.doors.tensors.resize_functions import record_resize, resize
from headrace._loading.doors.tensors.warp_functions import WARPS, recorder_of_warp
from headrace.pillow.recording.patches import (
    Place,
    Replacements,
    Untouched,
    Version,
    function,
    function_below_patch,
    kernels_of,
)

Recorder = Callable[..., "torch.Tensor | None"]

_MOST_STEPS = 64  # that are kept for equal calls
_MISSING = inspect.Parameter.empty
_NUMBERS = {int, float}


def _recorded(recorder: Recorder) -> Version:
    """A version of a function whose first argument is a tensor: `recorder` gets the function and its arguments, and
    returns None where it is left to the function."""

    def version(plain: Function) -> Function:
        parameters = list(inspect.signature(plain).parameters.values())[1:]
        # By the number of positional arguments: what else may be given, and the defaults.
        left = [{one.name: one.default for one in parameters[number:]} for number in range(len(parameters) + 1)]

        @functools.wraps(plain)
        def call(image: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(image, Deferred):
                return plain(image, *args, **kwargs)
            if type(image) is DeferredTensor and recording_of(image) is not None and is_deferring_possible():
                # What the function does not accept is left to it, and to its error.
                defaults = left[len(args)] if len(args) < len(left) else None
                if defaults is not None and kwargs.keys() <= defaults.keys():
                    values = [*args, *(defaults | kwargs).values()]
                    # What the program writes into a list later is not the record's.
                    values = [list(one) if type(one) is list else one for one in values]
                    if not any(one is _MISSING for one in values):
                        made = recorder(plain, image, *values)
                        if made is not None:
                            return made
            return plain(make(image), *args, **kwargs)

        return call

    return version


def _making(plain: Function) -> Function:
    """A version of a function in C that asks for a tensor's memory without asking `__torch_function__`."""

    @functools.wraps(plain)
    def call(tensor: Any) -> Any:
        return plain(make(tensor) if isinstance(tensor, Deferred) else tensor)

    return call


def _for_images(plain: Function) -> Function:
    """A version of v2's kernel for `tv_tensors.Image` or `Video`: calls that for tensors, as the kernel does."""
    kernel_of = _tensor_kernels()

    @functools.wraps(plain)
    def call(image: Any, *args: Any, **kwargs: Any) -> Any:
        recording = recording_of(image)
        kernel = None if recording is None else kernel_of(plain)
        if recording is None or kernel is None:
            return plain(make(image) if isinstance(image, Deferred) else image, *args, **kwargs)
        return wrap_result(kernel(defer(recording), *args, **kwargs), image)

    return call


def wrap_result(made: Any, image: Any) -> Any:
    """Returns what a kernel for tensors has made, as one of the class of the image."""
    if isinstance(made, (list, tuple)):
        return type(made)(wrap_result(one, image) for one in made)
    if not isinstance(made, torch.Tensor):
        return made
    recording = recording_of(made)
    plain: type = type(image).__dict__.get("stands_for", type(image))
    if recording is not None:
        recording.is_shared = True
        return defer(recording, plain)
    return made.as_subclass(plain)


@functools.cache
def _parts_of_resized_crop() -> Untouched:
    """The functions that torchvision's kernel calls by their names."""
    geometry = sys.modules["torchvision.transforms.v2.functional._geometry"]
    return Untouched((geometry, "crop_image"), (geometry, "resize_image"))


def _record_resized_crop(
    plain: Function, tensor: Any, top: Any, left: Any, height: Any, width: Any, size: Any, *options: Any
) -> Any:
    if not _parts_of_resized_crop():
        return None
    recording = recording_of(tensor)
    made = None if recording is None else crop_and_resize(recording, (top, left, height, width), size, *options)
    if made is not None:
        return defer(made) if isinstance(made, Recording) else made
    geometry = sys.modules["torchvision.transforms.v2.functional._geometry"]
    part = geometry.crop_image(tensor, top, left, height, width)
    return _kernel_of("resize")(part, size, interpolation=options[0], antialias=options[1])


def crop_and_resize(
    recording: Recording, box: tuple[Any, Any, Any, Any], size: Any, interpolation: Any, antialias: Any
) -> Recording | torch.Tensor | None:
    """Returns what v2's `resized_crop` makes of (top, left, height, width), or its values; None if that is left to the
    functions that it calls."""
    top, left, height, width = box
    edges = top, top + height, left, left + width
    resizing = kernel_below("resize")
    if resizing is None or not _parts_of_resized_crop() or not _is_inside(edges, recording.state):
        return None
    part = part_of(recording, edges)
    return None if part is None else resize(resizing, part, size, interpolation, None, antialias)


def kernel_below(name: str, kind: type = torch.Tensor) -> Function | None:
    """Returns torchvision's kernel of a functional of v2 for tensors, which ours stands in place of; None where another
    is there for them, or for the class of image."""
    kernels = _kernels(name)
    ours = kernels.get(kind)
    if kind is not torch.Tensor and function_below_patch(ours) is ours:
        return None
    plain = function_below_patch(kernels[torch.Tensor])
    return None if plain is kernels[torch.Tensor] else plain


def _is_inside(box: tuple[Any, ...], state: State) -> bool:
    """Whether (top, bottom, left, right) are the edges of a part of an image."""
    if not all(type(one) is int for one in box):
        return False
    top, bottom, left, right = box
    return bool(0 <= top < bottom <= state.height and 0 <= left < right <= state.width)


def _flip_along(axis: int) -> Recorder:
    return lambda plain, tensor: record_flip(tensor, axis)


def _record_erase(
    plain: Function, tensor: Any, top: Any, left: Any, height: Any, width: Any, values: Any, inplace: Any
) -> torch.Tensor | None:
    """Of a rectangle inside the image, with values that fit it."""
    state = recording_of(tensor).state  # type: ignore[union-attr]
    edges = top, left, height, width
    if inplace is not False or not all(type(one) is int and one >= 0 for one in edges):
        return None
    if not 0 < height <= state.height - top or not 0 < width <= state.width - left:
        return None
    if type(values) is not torch.Tensor or values.requires_grad or values.device.type != "cpu":
        return None
    part = (*state.shape[:-2], height, width)
    if len(values.shape) > len(part) or not all(
        one in (1, edge) for one, edge in zip(values.shape[::-1], part[::-1], strict=False)
    ):
        return None
    return record_finish(tensor, Erasing(plain, (top, left, height, width), values.clone()))


class ValueFunction:
    """A function that maps each value alike.

    Args:
        name: the function's.
        depends: gets a tensor, or what it stands for, and the arguments; returns what the result depends on beside the
            value, None where the function may do more, `_SAME` where it returns the tensor as it is.
    """

    def __init__(self, name: str, depends: Callable[..., Hashable]) -> None:
        self._name, self._depends = name, depends
        self._steps: BoundedTable[Hashable, ValueStep] = BoundedTable(_MOST_STEPS)

    def record(self, plain: Function, tensor: Any, *arguments: Any) -> torch.Tensor | None:
        """A recorder."""
        step = self.step_of(plain, tensor, *arguments)
        if step is None or isinstance(step, torch.Tensor):
            return step
        return record_values(tensor, step, in_place=self._name == "normalize" and arguments[-1] is True)

    def step_of(self, plain: Function, tensor: Any, *arguments: Any) -> Any:
        """Returns the step, the tensor if the function returns it as it is, or None if the function may do more."""
        key = self._depends(tensor, *arguments)
        if key is None or key is _SAME:
            return None if key is None else tensor
        known = (plain, key, arguments[-1], torch.get_default_dtype())
        return self._steps.find_or_make(known, lambda: _step_of(plain, (self._name, plain, key), arguments))


def _step_of(plain: Function, key: Hashable, arguments: Sequence[Any]) -> ValueStep:
    # What the program writes into a tensor later is not the step's.
    given = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]

    def call(values: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = plain(values, *given)
        return made

    return ValueStep(key, call)


_SAME = object()


def _key_of_dtype(tensor: Any, dtype: Any, *scale: Any) -> Hashable:
    if not isinstance(dtype, torch.dtype) or not all(type(one) is bool for one in scale):
        return None
    return _SAME if dtype == tensor.dtype else (dtype, *scale)


def _key_of_normalize(tensor: Any, mean: Any, std: Any, inplace: Any) -> Hashable:
    if type(inplace) is not bool or not tensor.dtype.is_floating_point:
        return None
    found = []
    for one in (mean, std):
        dtype, values = None, one if isinstance(one, (list, tuple)) else (one,)
        if isinstance(one, torch.Tensor):
            if type(one) is not torch.Tensor or one.dim() != 1 or one.device.type != "cpu" or one.requires_grad:
                return None
            dtype, values = one.dtype, tuple(one.tolist())
        if not _NUMBERS.issuperset(map(type, values)) or len(values) not in (1, tensor.shape[-3]):
            return None
        found.append((dtype, *values))
    return None if 0 in found[1][1:] else repr(found)


def _image_classes() -> tuple[type, ...]:
    tv_tensors = sys.modules["torchvision.tv_tensors"]
    return tv_tensors.Image, tv_tensors.Video


def _kernel_of(name: str) -> Any:
    return _kernels(name)[torch.Tensor]


@functools.cache
def _kernels(name: str) -> Any:
    return kernels_of(name)(sys.modules[_UTILS])


def _tensor_kernels() -> Callable[[Function], Function | None]:
    """Returns a function that finds the kernel for tensors beside one for images or videos."""

    @functools.cache
    def find(plain: Function) -> Function | None:
        for kernels in sys.modules[_UTILS]._KERNEL_REGISTRY.values():
            ours = [kernels.get(one) for one in _image_classes()]
            if any(one is plain or (one is not None and getattr(one, "__wrapped__", None) is plain) for one in ours):
                return lambda *args, **kwargs: kernels[torch.Tensor](*args, **kwargs)
        return None

    return find


TO_DTYPE: ValueFunction = ValueFunction("to_dtype", _key_of_dtype)
NORMALIZE: ValueFunction = ValueFunction("normalize", _key_of_normalize)
_UTILS = "torchvision.transforms.v2.functional._utils"
_V1 = "torchvision.transforms._functional_tensor"
_RECORDERS: dict[str, Recorder] = {name: recorder_of(name, 2) for name in COLOURS} | {
    **{name: recorder_of_warp(name, 2) for name in WARPS},
    "rgb_to_grayscale": functools.partial(record_gray, 2),
    "resize": record_resize,
    "horizontal_flip": _flip_along(-1),
    "vertical_flip": _flip_along(-2),
    "resized_crop": _record_resized_crop,
    "pad": record_pad,
    "erase": _record_erase,
    "to_dtype": TO_DTYPE.record,
    "normalize": NORMALIZE.record,
}
_OF_V1: dict[str, Recorder] = {name: recorder_of(name, 1) for name in COLOURS if name != "permute_channels"} | {
    **{name: recorder_of_warp(name, 1) for name in WARPS},
    "rgb_to_grayscale": functools.partial(record_gray, 1),
    "hflip": _flip_along(-1),
    "vflip": _flip_along(-2),
    "resize": record_resize,
    "pad": record_pad_of_v1,
    "erase": _record_erase,
    "convert_image_dtype": ValueFunction("convert_image_dtype", _key_of_dtype).record,
    "normalize": ValueFunction("normalize", _key_of_normalize).record,
}


class ImageKernels:
    """The replacements, made once torchvision's v2 is there: its functionals are only known then."""

    def __init__(self) -> None:
        self._torch = Replacements([function("torch.utils.dlpack", "to_dlpack", _making)])
        self._v1 = Replacements([function(_V1, name, _recorded(recorder)) for name, recorder in _OF_V1.items()])
        self._v2: Replacements | None = None

    def replace(self) -> bool:
        """See `Replacements.replace`."""
        self._torch.replace()
        self._v1.replace()
        if self._v2 is None and (utils := sys.modules.get(_UTILS)) is not None:
            registry = utils._KERNEL_REGISTRY.items()
            places = [(one, known) for one in _image_classes() for known, kernels in registry if one in kernels]
            self._v2 = Replacements(
                [Place(_UTILS, kernels_of(name), torch.Tensor, _recorded(one)) for name, one in _RECORDERS.items()]
                + [Place(_UTILS, kernels_of(known.__name__), one, _for_images) for one, known in places]
            )
        return self._v2 is not None and self._v2.replace()

    def put_back(self) -> None:
        """See `Replacements.put_back`."""
        self._torch.put_back()
        self._v1.put_back()
        if self._v2 is not None:
            self._v2.put_back()


KERNELS: ImageKernels = ImageKernels()
