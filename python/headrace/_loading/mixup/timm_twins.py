"""timm's Mixup on batches that it overwrites, and its FastCollateMixup on samples, with numpy's random numbers from a
generator of the calling thread."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
import torch

from headrace._base.originals.relied_functions import are_functions_original
from headrace._base.safe_exceptions import contextmanager
from headrace._base.types import Function
from headrace._loading.mixup import in_place_mixes
from headrace._recipe.draws.python_randomness import numpy_seed_of

_MODULE = "timm.data.mixup"


def make_timm_twin(mix: object) -> Function | None:
    """Returns an object that does what timm's Mixup does, with the attributes of `mix`; None if `mix` is none.

    Mixup changes its input itself. In mode "batch" the twin does so natively, else by timm's own code.
    """
    module = sys.modules.get(_MODULE)
    if module is None or type(mix) is not module.Mixup or any(map(callable, vars(mix).values())):
        return None
    if not are_functions_original(type(mix)):
        return None
    made: Function = object.__new__(_twin_class(module.Mixup))
    made.__dict__ = mix.__dict__
    return made


def collating_twin(collate_fn: object) -> Function | None:
    """Returns an object that does what timm's FastCollateMixup does; None if `collate_fn` is none.

    It is timm's own code: it makes a new batch of bytes from the samples, and keeps none of these.
    """
    module = sys.modules.get(_MODULE)
    kind = getattr(module, "FastCollateMixup", None)
    if module is None or type(collate_fn) is not kind or any(map(callable, vars(collate_fn).values())):
        return None
    if not are_functions_original(kind):
        return None
    made: Function = object.__new__(_collating_class(module.Mixup, kind))
    made.__dict__ = collate_fn.__dict__
    return made


@contextmanager
def twins_seeded(seed: int) -> Iterator[None]:
    """While active, twins in this thread draw from a generator of their own, seeded as
    ``numpy.random.seed(numpy_seed_of(seed))`` would seed numpy's; numpy's own generator is not touched."""
    before = vars(_thread).get("random")
    _thread.random = np.random.RandomState(numpy_seed_of(seed))
    try:
        yield
    finally:
        _thread.random = before


_thread = threading.local()


class _Numpy:
    """The module numpy, but for the generator of its module `random`."""

    def __getattr__(self, name: str) -> object:
        own = vars(_thread).get("random") if name == "random" else None
        return getattr(np, name) if own is None else own


def _rebind_methods(kind: object) -> tuple[dict[str, Function], dict[str, Any]]:
    """Returns copies of a class's methods, and of the functions of timm's module, over `_Numpy`."""
    module = sys.modules[_MODULE]
    names = dict(vars(module)) | {"np": _Numpy()}

    def rebound(function: FunctionType) -> FunctionType:
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    functions = {name: one for name, one in vars(module).items() if type(one) is FunctionType}
    names |= {name: rebound(one) for name, one in functions.items() if one.__module__ == _MODULE}
    return {name: rebound(one) for name, one in vars(kind).items() if type(one) is FunctionType}, names


@functools.cache
def _collating_class(base: type, kind: type) -> Any:
    """Returns a subclass of FastCollateMixup with its own and Mixup's methods over `_Numpy`."""
    methods = _rebind_methods(base)[0] | _rebind_methods(kind)[0]
    own_call = methods["__call__"]

    def call(self: object, samples: object) -> object:
        with torch._C.DisableTorchFunction():  # modes of the calling thread would see each operation
            return own_call(self, samples)

    return type(kind.__name__, (kind,), methods | {"__call__": call})


@functools.cache
def _twin_class(kind: type) -> Any:
    """Returns a subclass of Mixup with the methods and functions of timm's module over `_Numpy`."""
    methods, names = _rebind_methods(kind)
    own_mix, own_call = methods["_mix_batch"], methods["__call__"]

    def mix_batch(self: Any, x: torch.Tensor) -> object:
        if not in_place_mixes.is_mixable(x):
            return own_mix(self, x)
        lam, cut = self._params_per_batch()
        if lam == 1.0:
            return 1.0
        if not cut:
            in_place_mixes.mix_batch_in_place(x, lam, mirrored=True)
            return lam
        find = names["cutmix_bbox_and_lam"]
        (top, bottom, left, right), lam = find(x.shape, lam, self.cutmix_minmax, self.correct_lam)
        in_place_mixes.move_boxes(x, (int(left), int(top), int(right), int(bottom)), mirrored=True)
        return lam

    def call(self: object, x: object, target: object) -> object:
        with torch._C.DisableTorchFunction():  # StackedViews would copy the batch before it is written to
            return own_call(self, x, target)

    return type(kind.__name__, (kind,), methods | {"_mix_batch": mix_batch, "__call__": call})
