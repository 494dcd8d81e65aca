"""Recognises a worker_init_fn that only seeds generators or limits threads, which has no effect on native threads.

Its code, and that of the functions that it calls, is executed on what the values may be. Everything that may be done
has to be known: arithmetic, seeding, reading the worker's number and seed, messages that nobody gets.
"""

from __future__ import annotations

import builtins
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import torch

from headrace._lowering.python_steps.abstract_frames import Frames
from headrace._lowering.python_steps.bytecode_analysis import PLAIN
from headrace._lowering.python_steps.origin_kinds import Bound, Member, Seen, find_member
from headrace._lowering.python_steps.value_sets import FREE, Frame, Inner, Unclear, Value, bound_arguments

_INFO, _DATA = "what get_worker_info returns", "the dataset"
#: By module, the functions that may be called: those that seed; those that limit threads; those that only compute.
_ALLOWED_FUNCTIONS = {
    "random": ("seed", "setstate", "getstate", "Random"),
    "numpy": ("array", "asarray", "int64", "uint32", "uint64", "iinfo", "abs", "arange"),
    "numpy.random": ("seed", "get_state", "set_state", "SeedSequence", "default_rng", "RandomState", "randint"),
    "torch": (
        "initial_seed",
        "manual_seed",
        "seed",
        "set_rng_state",
        "get_rng_state",
        "set_num_threads",
        "tensor",
        "use_deterministic_algorithms",
    ),
    "torch.random": ("initial_seed", "manual_seed", "seed", "set_rng_state", "get_rng_state"),
    "torch.cuda": ("manual_seed", "manual_seed_all", "is_available", "seed", "seed_all", "device_count"),
    "torch.mps": ("manual_seed", "is_available"),
    "torch.xpu": ("manual_seed", "manual_seed_all", "is_available"),
    "cv2": ("setNumThreads", "setRNGSeed"),
    "cv2.ocl": ("setUseOpenCL",),
    "os": ("getpid",),
    "builtins": ("abs", "hash", "len", "min", "max", "sum", "round", "pow", "divmod", "sorted", "id", "ord", "iter"),
}
#: Flags, by module, and variables of the environment that no step on the CPU sees.
_UNSEEN_FLAGS = {"torch.backends.cudnn": ("deterministic", "benchmark", "enabled")}
_UNSEEN_VARIABLES = frozenset(
    """PYTHONHASHSEED OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS VECLIB_MAXIMUM_THREADS
    PL_GLOBAL_SEED CUBLAS_WORKSPACE_CONFIG""".split()  # noqa: SIM905
)
_PURE_TYPES = (int, float, str, bool, list, tuple, dict, set, range, enumerate, zip, reversed, bytes, type, map)
_PURE_METHODS = frozenset(
    """append extend tolist item generate_state spawn format encode decode digest hexdigest to_bytes from_bytes
    bit_length join split get items keys values numpy int long sum copy astype integers randint random choice
    startswith endswith strip lower upper manual_seed manual_seed_all""".split()  # noqa: SIM905
)
_DEEPEST = 12
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def only_seeds(function: Callable[[int], object], dataset: object = None) -> bool:
    """Whether a worker_init_fn does nothing that a batch could show but to seed generators.

    Args:
        dataset: the loader's, which the function may search for objects with ``set_random_state``.
    """
    if not isinstance(function, (FunctionType, MethodType, functools.partial)):
        return False
    try:
        _Seeding(dataset).call(frozenset([Seen(function)]), [FREE], (), None)
    except (Unclear, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class Text:
    """A string that is known."""

    name: str


_REWRITTEN = Text("@")


class _Seeding(Frames):
    """Executes a function that may only seed; raises Unclear at anything else."""

    def __init__(self, dataset: object) -> None:
        super().__init__()
        self._dataset = dataset
        self._running: list[object] = []

    # ---- values ------------------------------------------------------------------------------------------------------

    def constant(self, value: object) -> Value:
        return frozenset([Text(value)]) if isinstance(value, str) else FREE

    def origin(self, found: object) -> Value:
        return self.constant(found) if _is_plain(found) else frozenset([Seen(found)])

    def global_(self, name: str, frame: Frame) -> Value:
        if name.startswith("@"):  # what pytest inserts when it rewrites assertions
            return frozenset([_REWRITTEN])
        if name not in frame.named and not hasattr(builtins, name):
            raise Unclear(f"the name {name}")
        return super().global_(name, frame)

    def import_(self, name: str) -> Value:
        if name not in sys.modules:
            raise Unclear(f"imports {name}")
        return self.origin(sys.modules[name])

    def attribute(self, value: Value, name: str, frame: Frame | None) -> Value:
        if not value:
            return frozenset([Member(None, name)])
        return FREE.union(*(self._attribute(one, name) for one in value))

    def _attribute(self, one: object, name: str) -> Value:
        if one is _REWRITTEN:
            return frozenset([one])
        if one is _INFO:
            if name not in ("id", "seed", "num_workers", "dataset"):
                raise Unclear(name)
            return frozenset([_DATA]) if name == "dataset" else FREE
        if one is _DATA:
            return frozenset([_DATA]) if name == "__dict__" else frozenset([Member(_DATA, name)])
        if not isinstance(one, Seen):
            return frozenset([Member(None, name)])
        held = one.one
        if isinstance(held, ModuleType):
            return self.origin(getattr(held, name)) if hasattr(held, name) else frozenset([Member(None, name)])
        if isinstance(held, logging.Logger):
            return frozenset([Member(one, name)])
        names = getattr(held, "__dict__", {})
        if name in names:
            return self.origin(names[name])
        found = find_member(type(held), name)
        if isinstance(found, FunctionType):
            return frozenset([Bound(found, one)])
        raise Unclear(name)

    def item(self, value: Value) -> Value:
        for one in value:
            if isinstance(one, Seen) and not (
                isinstance(one.one, (list, tuple, dict)) and all(map(_is_plain, one.one))
            ):
                raise Unclear("an item")
        return frozenset([_DATA]) if _DATA in value else FREE

    def operate(self, name: str, left: Value, right: Value, in_place: bool) -> Value:
        compares = name in ("COMPARE_OP", "CONTAINS_OP")
        for one in left | right:
            function = isinstance(one, Seen) and isinstance(one.one, (FunctionType, type))
            if not _is_number(one) and not (compares and function):
                raise Unclear(name)
        return FREE

    def text(self, key: Value) -> str:
        return next((one.name for one in key if isinstance(one, Text)), "")

    def change(self, target: Value, what: str) -> None:
        for one in target:
            if isinstance(one, Seen) and one.one is os.environ and what in _UNSEEN_VARIABLES:
                continue
            flags = _UNSEEN_FLAGS.get(getattr(one.one, "__name__", ""), ()) if isinstance(one, Seen) else ()
            if what not in flags and not _is_number(one):
                raise Unclear("a change")

    def change_name(self, name: str) -> None:
        raise Unclear(name)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def call(self, callee: Value, arguments: list[Value], names: tuple[str, ...], frame: Frame | None) -> Value:
        return FREE.union(*(self._call(one, arguments, names) for one in callee))

    def _call(self, one: object, arguments: list[Value], names: tuple[str, ...]) -> Value:
        if isinstance(one, Text):
            return FREE  # no string can be called, so this is not reached
        if isinstance(one, Member):
            return self._call_member(one, arguments)
        if isinstance(one, Inner):
            return self._execute(one, one.code, one.frame.named, arguments, names, one.defaults, one.frame)
        if isinstance(one, Bound):
            return self._call(Seen(one.function), [frozenset([one.of]), *arguments], names)
        if not isinstance(one, Seen):
            raise Unclear("a call")
        called = one.one
        if type(called) is functools.partial:
            given = [*map(self.origin, called.args), *arguments[: len(arguments) - len(names)]]
            named = {**{name: self.origin(value) for name, value in called.keywords.items()}}
            named |= dict(zip(names, arguments[len(arguments) - len(names) :], strict=True))
            return self._call(Seen(called.func), [*given, *named.values()], tuple(named))
        if type(called) is MethodType and isinstance(called.__func__, FunctionType) and not _is_allowed(called):
            return self._call(Bound(called.__func__, Seen(called.__self__)), arguments, names)
        name = getattr(called, "__name__", "")
        if name == "get_worker_info" and called is torch.utils.data.get_worker_info:
            return frozenset([_INFO])
        if _is_allowed(called) or (isinstance(called, type) and called in _PURE_TYPES) or _is_error(called):
            self._only_pure(arguments)
            return frozenset([_DATA]) if any(_DATA in one for one in arguments) else FREE
        if name in ("getattr", "hasattr", "isinstance", "callable") and isinstance(called, BuiltinFunctionType):
            return self._look_up_attribute(name, arguments)
        if isinstance(called, FunctionType):
            if called.__module__.startswith("transformers.") and name.startswith("is_") and name.endswith("_available"):
                return FREE
            defaults = FREE.union(*map(self.origin, called.__defaults__ or ()))
            return self._execute(called, called.__code__, called.__globals__, arguments, names, defaults, None)
        wrapped = getattr(called, "__wrapped__", None)
        if type(called).__name__ == "_lru_cache_wrapper" and isinstance(wrapped, FunctionType):
            return self._call(Seen(wrapped), arguments, names)
        raise Unclear(name)

    def _look_up_attribute(self, name: str, arguments: list[Value]) -> Value:
        if name != "getattr":
            return FREE
        text = self.text(arguments[1]) if len(arguments) > 1 else ""
        found = FREE if len(arguments) < 3 else arguments[2]
        for one in arguments[0]:
            if not isinstance(one, Seen) or isinstance(one.one, ModuleType):
                raise Unclear("getattr")
            found |= self.origin(getattr(one.one, "__dict__", {}).get(text))
        return found

    def _call_member(self, one: Member, arguments: list[Value]) -> Value:
        """Calls a method of a value, of a logger, or of an object in the dataset."""
        if one.of is None and one.name in _PURE_METHODS:
            self._only_pure(arguments)
            return FREE
        if one.of is _DATA and one.name in ("startswith", "endswith", "items", "keys", "values"):
            return frozenset([_DATA])
        if one.of is _DATA and one.name == "set_random_state" and not _has_random_states(self._dataset):
            return FREE
        log = one.of.one if isinstance(one.of, Seen) else None
        if isinstance(log, logging.Logger) and one.name in _LEVELS and not log.isEnabledFor(_LEVELS[one.name]):
            return FREE
        raise Unclear(one.name)

    def _only_pure(self, arguments: list[Value]) -> None:
        for one in FREE.union(*arguments):
            held = isinstance(one, Seen) and isinstance(one.one, (list, tuple, dict))
            if not _is_number(one) and not held and one is not _DATA and not isinstance(one, Inner):
                raise Unclear("an argument")

    def _execute(
        self,
        key: object,
        code: CodeType,
        named: dict[str, object],
        arguments: list[Value],
        names: tuple[str, ...],
        defaults: Value,
        around: Frame | None,
    ) -> Value:
        if code in self._running:
            return FREE
        if len(self._running) > _DEEPEST:
            raise Unclear("calls within calls")
        local = bound_arguments(code, arguments, names, defaults)
        cells = {name: local.get(name, FREE) for name in code.co_cellvars}
        if isinstance(key, FunctionType):
            contents = [self.origin(cell.cell_contents) for cell in key.__closure__ or ()]
            cells |= zip(code.co_freevars, contents, strict=True)
        free = frozenset() if around else frozenset(code.co_freevars)
        self._running.append(code)
        try:
            return self.execute(Frame(code, named, local, cells, FREE, free, around=around))
        finally:
            self._running.pop()


def _is_plain(one: object) -> bool:
    return isinstance(one, (*PLAIN, bool)) or (isinstance(one, (tuple, frozenset)) and all(map(_is_plain, one)))


def _is_number(one: object) -> bool:
    return isinstance(one, Text) or (isinstance(one, Member) and one.of is None)


def _is_error(called: object) -> bool:
    return isinstance(called, type) and issubclass(called, BaseException)


def _is_allowed(called: object) -> bool:
    """Whether an object is one of the functions that seed, limit threads, or have no effect."""
    for module, names in _ALLOWED_FUNCTIONS.items():
        held = sys.modules.get(module)
        # Methods of the process's generators are new objects at each look-up.
        if held is not None and any(called is one or _is_same_method(called, one) for one in _members(held, names)):
            return True
    return False


def _members(module: ModuleType, names: tuple[str, ...]) -> list[object]:
    return [getattr(module, name) for name in names if hasattr(module, name)]


def _is_same_method(called: object, one: object) -> bool:
    return isinstance(called, (MethodType, BuiltinFunctionType)) and type(called) is type(one) and called == one


def _has_random_states(dataset: object) -> bool:
    """Whether an object in a dataset's attributes has ``set_random_state``; True without a dataset."""
    return dataset is None or any(hasattr(one, "set_random_state") for one in _walk_objects(dataset))


def _walk_objects(dataset: object) -> Iterator[object]:
    seen: set[int] = set()
    waiting = [dataset]
    while waiting and len(seen) < 10_000:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, PLAIN):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, (list, tuple)):
            waiting.extend(one[:1000])
        elif isinstance(one, dict):
            waiting.extend(list(one.values())[:1000])
        else:
            waiting.append(getattr(one, "__dict__", {}))
