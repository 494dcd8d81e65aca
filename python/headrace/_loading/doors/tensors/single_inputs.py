"""Calls of v2's transforms with one deferred tensor or Pillow's image, without the search for other inputs.

A transform of v2 takes any nesting of inputs: it flattens what it gets, finds which of the leaves to change, and nests
the results again. For one image this takes as long as recording the function. Here the transform's own methods are
called with the image alone.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType
from typing import Any

import torch
from PIL import Image

from headrace._base.types import Function
from headrace._loading.doors.tensors.deferred_tensor import Deferred
from headrace.pillow.recording.patches import Replacements, Untouched, method

_MODULE = "torchvision.transforms.v2._transform"
#: The names that `forward` of the known versions of torchvision refers to. Others call the library's.
_METHODS = {"check_inputs", "_needs_transform_list", "make_params", "transform"}
FORWARD: set[str] = _METHODS | {"tree_flatten", "tree_unflatten", "len", "zip"}
RANDOMLY: set[str] = FORWARD | {"torch", "rand", "p"}


def _for_one(names: set[str], *, randomly: bool) -> Any:
    """A version of a `forward` that refers to these names; `randomly`: it leaves its input as it is in some calls."""

    def version(plain: Function) -> Function:
        if names_in(plain.__code__) != names:
            return plain
        module = sys.modules[_MODULE]
        own = Untouched((module.Transform, "_needs_transform_list"), (module, "check_type"))

        @functools.wraps(plain)
        def forward(self: Any, *inputs: Any) -> Any:
            one = inputs[0] if len(inputs) == 1 else None
            kind = type(self)
            if (
                not isinstance(one, (Deferred, Image.Image))
                or kind._needs_transform_list is not module.Transform._needs_transform_list
                or not own
                or not module.check_type(one, self._transformed_types)
            ):
                return plain(self, *inputs)
            leaves = [one]
            self.check_inputs(leaves)
            if randomly and torch.rand(1) >= self.p:
                return one
            return self.transform(one, self.make_params(leaves))

        return forward

    return version


def names_in(code: CodeType) -> set[str]:
    """The names that a function refers to, also in its comprehensions, which are code of their own before 3.12."""
    inner = [names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


TRANSFORMS = Replacements(
    [
        method(_MODULE, "Transform", "forward", _for_one(FORWARD, randomly=False)),
        method(_MODULE, "_RandomApplyTransform", "forward", _for_one(RANDOMLY, randomly=True)),
    ]
)
