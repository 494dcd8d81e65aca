"""Decides from its bytecode whether a Python step is so short that threads hardly wait for each other's calls."""

from __future__ import annotations

import dis
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

import numpy as np
import torch

from headrace._lowering.python_steps.bytecode_analysis import PLAIN, is_known
from headrace._lowering.transform_library import class_origin, has_hooks

#: Transforms of the libraries that run in Python after a Python step, and are a few calls of torch there.
_SHORT = frozenset(
    [
        "CenterCrop",
        "ConvertImageDtype",
        "Identity",
        "Normalize",
        "PILToTensor",
        "RandomErasing",
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "ToDtype",
        "ToImage",
        "ToPureTensor",
        "ToTensor",
    ]
)
_MOST_CALLS = 8
_MOST_VALUES = 100  # of a container; more are not looked at
_JUMPS = {*dis.hasjabs, *dis.hasjrel}


def is_short(step: Any) -> bool:
    """Returns whether a transform is a function, or a Lambda of one, with at most eight calls and no loop.

    The functions are those of torch, torchvision, Pillow, NumPy, OpenCV and Python, and methods of its argument: a call
    of them takes some tenths of a millisecond at most, or releases the interpreter. A conversion, ``Normalize`` and
    the like are short; any other object with ``__call__`` is not, whatever it does.
    """
    origin = class_origin(type(step))
    if origin is not None and origin[1] in _SHORT and not has_hooks(step):
        return True
    function = step.lambd if origin in {("v1", "Lambda"), ("v2", "Lambda")} else step
    if isinstance(function, (BuiltinFunctionType, MethodDescriptorType)):
        return True
    if not isinstance(function, FunctionType):
        return False
    return is_known(function.__module__) or (_is_straight(function.__code__) and _calls_known(function))


def _is_straight(code: CodeType) -> bool:
    """Whether code has no loop, no function inside and few calls."""
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    found = list(dis.get_instructions(code))
    back = any(one.opcode in _JUMPS and one.argval <= one.offset for one in found)
    calls = sum(one.opname.startswith("CALL") and "INTRINSIC" not in one.opname for one in found)
    return not back and calls <= _MOST_CALLS


def _calls_known(function: FunctionType) -> bool:
    """Whether all globals, closed-over values and defaults of a function are plain, or of the known packages."""
    named = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    named += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    try:
        return all(map(_is_known_value, [*named, *(cell.cell_contents for cell in function.__closure__ or ())]))
    except (ValueError, RecursionError):  # a cell that is not filled yet; a container that holds itself
        return False


def _is_known_value(value: object) -> bool:
    if isinstance(value, ModuleType):
        return is_known(value.__name__)
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return is_known(value.__module__)
    if isinstance(value, (tuple, list, dict)):
        values = value.values() if isinstance(value, dict) else value
        return len(values) <= _MOST_VALUES and all(map(_is_known_value, values))
    return isinstance(value, (*PLAIN, np.ndarray, torch.Tensor))
