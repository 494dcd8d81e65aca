"""Finds what the calls of a step may change beyond the sample: attributes, containers, generators, files, globals.

The functions that a call may run are executed on sets of objects (`abstract_frames`), from the step itself. So an
assignment to an item of a new array differs from one to an item of an array that the step holds, and methods that no
call reaches do not count.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType

import torch

from headrace._lowering.python_steps.bytecode_analysis import MACHINERY, NOT_CALLED, inspectable, is_known
from headrace._lowering.python_steps.known_methods import (
    CHANGING,
    CHANGING_FIRST,
    GETTING,
    NEW,
    PUTTING,
    READING_ALL,
    ends_in_place,
)
from headrace._lowering.python_steps.origin_kinds import (
    ARRAYS,
    ELEMENTS,
    HELD,
    Bound,
    Member,
    New,
    Seen,
    Super,
    find_member,
    is_code,
    is_free,
    is_own_class,
    namespaces,
    own_instance,
)
from headrace._lowering.python_steps.reachable_objects import Reached
from headrace._lowering.python_steps.value_sets import FREE, Frame, Inner, Unclear, Value, bound_arguments
from headrace._recipe.draws.step_generators import GENERATORS, is_seedable

_DEEPEST = 40
_MOST_ELEMENTS = 200


class Changes(Reached):
    """What calls may change; see `Reached` for the attributes."""

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[object, Value] = {}
        self._running: set[object] = set()
        self._templates: set[int] = set()

    def record_call(self, step: object) -> None:
        """Records what a call of the step with a sample may change.

        Raises:
            Unclear: its code cannot be followed.
        """
        before: Value | None = None
        while self._put != before:
            before = self._put
            self._results.clear()
            self._templates.clear()
            self.executed = 0
            try:
                self.call_one(Seen(step), [FREE], (), None)
            except RecursionError:
                raise Unclear("calls within calls") from None

    def super_(self, frame: Frame | None) -> Value:
        cls = next(iter((frame and frame.cell("__class__")) or FREE), None)
        if frame is None or not isinstance(cls, Seen) or not isinstance(cls.one, type):
            raise Unclear("super")
        return frozenset(Super(one.one, cls.one) for one in frame.first if isinstance(one, Seen))

    def call(self, callee: Value, arguments: list[Value], names: tuple[str, ...], frame: Frame | None) -> Value:
        if not callee:
            return self._call_unknown(arguments, "")
        return FREE.union(*(self.call_one(one, arguments, names, frame) for one in callee))

    def call_one(self, one: object, arguments: list[Value], names: tuple[str, ...], frame: Frame | None) -> Value:
        if isinstance(one, Inner):
            return self._execute(one, one.code, one.frame.named, arguments, names, one.defaults, one.frame)
        if isinstance(one, Bound):
            return self._call_method(one, arguments, names)
        if isinstance(one, Member):
            return self._call_member(one, arguments, names)
        if isinstance(one, New):
            function = find_member(one.cls, "__call__")
            return self.call_one(Bound(function, one), arguments, names, None) if function else one.holds
        if not isinstance(one, Seen):
            if one is HELD:
                raise Unclear("calls an object that it holds")
            return self._call_unknown(arguments, "")
        called = one.one
        if isinstance(called, FunctionType):
            return self._call_function(called, arguments, names)
        if isinstance(called, MethodType):
            self.origin(called.__self__)
            return self.call_one(Bound(called.__func__, Seen(called.__self__)), arguments, names, frame)
        if isinstance(called, BuiltinFunctionType):
            return self._call_builtin(called, arguments, names)
        if isinstance(called, type):
            return self._call_class(called, arguments, names, frame)
        if isinstance(called, functools.partial):
            given = [*map(self.origin, called.args), *arguments, *map(self.origin, called.keywords.values())]
            at = len(given) - len(called.keywords)
            ordered = given[: at - len(names)] + given[at:] + given[at - len(names) : at]
            return self.call_one(Seen(called.func), ordered, (*called.keywords, *names), frame)
        if isinstance(called, functools._lru_cache_wrapper):
            self.call_one(Seen(called.__wrapped__), arguments, names, frame)
            return frozenset([HELD])
        return self._call_object(called, arguments, names)

    def _call_object(self, called: object, arguments: list[Value], names: tuple[str, ...]) -> Value:
        self.touched[id(called)] = called
        if inspectable(called) and is_seedable(called):
            self.seedables[id(called)] = called  # seeded for each sample, where it is found
            return FREE
        function = find_member(type(called), "__call__")
        if isinstance(function, FunctionType) and not is_known(function.__module__):
            return self.call_one(Bound(function, Seen(called)), arguments, names, None)
        self._run_template_methods(called)
        if isinstance(called, torch.nn.Module) and not is_own_class(type(called)):
            self.modules.append(called)
        if not is_known(type(called).__module__) and not own_instance(called):
            raise Unclear(f"calls compiled code of {type(called).__module__}")
        return self._call_library_function(getattr(called, "__name__", ""), FREE, arguments, names)

    def _call_method(self, one: Bound, arguments: list[Value], names: tuple[str, ...]) -> Value:
        function, of = one.function, one.of
        if isinstance(function, functools._lru_cache_wrapper):
            self.call_one(Seen(function.__wrapped__), [frozenset([of]), *arguments], names, None)
            return frozenset([HELD])
        if not isinstance(function, FunctionType):
            return self._call_member(Member(of, getattr(function, "__name__", "")), arguments, names)
        if is_known(function.__module__):
            if isinstance(of, Seen):
                self._run_template_methods(of.one)
                if isinstance(of.one, GENERATORS):
                    return FREE
            changing = function.__name__ in CHANGING or ends_in_place(function.__name__)
            changing |= (
                isinstance(of, Seen) and type(of.one).__name__ == "ImageDraw"
            )  # it draws on an image that it holds
            if changing and not (isinstance(of, Seen) and is_own_class(type(of.one))):
                self.change(frozenset([of]), "")
            elif changing:
                self.found.append((getattr(of, "one", None), f"calls {function.__name__} of itself"))
            return self._call_library_function(function.__name__, frozenset([of]), arguments, names)
        return self._call_function(function, [frozenset([of]), *arguments], names)

    def _call_member(self, one: Member, arguments: list[Value], names: tuple[str, ...]) -> Value:
        """Calls a method of a container, an array or an object of a compiled class."""
        of = one.of
        if of is None:
            given = self._call_unknown(arguments, "")
            if one.name in PUTTING:
                self.store(FREE, given)
            return self._put if one.name in GETTING else FREE
        if of is HELD:
            raise Unclear(f"calls {one.name} of an object that it holds")
        if isinstance(of, Seen):
            if isinstance(of.one, GENERATORS):
                self.change(arguments[0] if arguments and one.name == "shuffle" else FREE, "")
                return FREE
            if isinstance(of.one, type):
                return self._call_library_function(one.name, FREE, arguments, names)
            if not isinstance(of.one, (*ELEMENTS, *ARRAYS)) and not is_known(type(of.one).__module__):
                raise Unclear(f"calls compiled code of {type(of.one).__module__}")
        if one.name in CHANGING or ends_in_place(one.name):
            self.change(frozenset([of]), "")
        if isinstance(of, Seen) and isinstance(of.one, ELEMENTS):
            return self._item(of) | self._call_unknown(arguments, one.name)
        return self._call_library_function(one.name, frozenset([of]), arguments, names)

    def _call_builtin(self, called: BuiltinFunctionType, arguments: list[Value], names: tuple[str, ...]) -> Value:
        of = called.__self__
        if isinstance(of, GENERATORS):
            self.origin(of)
            return FREE
        if of is not None and not isinstance(of, (ModuleType, type)):
            self.origin(of)
            return self._call_member(Member(Seen(of), called.__name__), arguments, names)
        if not is_known(getattr(called, "__module__", None) or type(of).__module__):
            raise Unclear(f"calls compiled code of {called.__module__}")
        return self._call_library_function(called.__name__, FREE, arguments, names)

    def _call_class(self, cls: type, arguments: list[Value], names: tuple[str, ...], frame: Frame | None) -> Value:
        """Calls a class."""
        if cls is super:
            return self.super_(frame)
        if cls is type and len(arguments) == 1:
            return FREE.union(*(self.origin(type(one.one)) for one in arguments[0] if isinstance(one, Seen)))
        if cls in (list, tuple, set, frozenset, dict, reversed, enumerate, zip):
            return FREE.union(*map(self.item, arguments))
        if not is_own_class(cls):
            return self._call_unknown([*arguments], cls.__name__)
        made = New(cls, self._call_unknown(arguments, ""))
        for name in ("__init__", "__post_init__"):
            function = find_member(cls, name)
            if isinstance(function, FunctionType) and not is_known(function.__module__):
                self._call_function(function, [frozenset([made]), *(arguments if name == "__init__" else [])], names)
        return frozenset([made])

    def _call_library_function(self, name: str, of: Value, arguments: list[Value], names: tuple[str, ...]) -> Value:
        """Calls a function or method of a known package."""
        if "out" in names:
            self.change(arguments[len(arguments) - len(names) + names.index("out")], "")
        if arguments and (name in CHANGING_FIRST or (not of and ends_in_place(name))):
            self.change(arguments[0], "")
        self.reads_all |= name in READING_ALL
        given = self._call_unknown(arguments, name)
        if name in ("getattr", "vars"):
            return frozenset([HELD]) if given else FREE
        return FREE if name in NEW else of | given

    def _call_unknown(self, arguments: list[Value], name: str) -> Value:
        """Returns what code that is not looked at may return of its arguments, after it has called those that are
        functions."""
        given = FREE.union(*arguments)
        code = frozenset(one for one in given if is_code(one))
        kept = frozenset(one for one in given - code if not is_free(one))
        for one in code:
            self.call_one(one, [kept], ("**",), None)
        return FREE if name in NEW else kept

    def _run_template_methods(self, called: object) -> None:
        """Runs what a call of an object of a known class, or of one derived from it, may run of the user's code."""
        if id(called) in self._templates or isinstance(called, (*ELEMENTS, *ARRAYS, *GENERATORS)):
            return
        if type(called).__module__.partition(".")[0] in MACHINERY:
            return
        self._templates.add(id(called))
        if getattr(called, "training", False) and getattr(called, "track_running_stats", False):
            self.found.append((called, f"changes the statistics of a {type(called).__name__}"))
        known = [cls for cls in type(called).__mro__ if not is_own_class(cls)]
        for cls in type(called).__mro__:
            for name, member in vars(cls).items() if is_own_class(cls) else ():
                function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                if not isinstance(function, FunctionType) or name in NOT_CALLED or name in _OF_MODULES:
                    continue
                if any(name in vars(base) for base in known):
                    own = [] if isinstance(member, staticmethod) else [frozenset([Seen(called)])]
                    self._call_function(function, [*own, FREE], ("**",))
        for names in namespaces(called):
            for value in list(names.values()):
                self._call_inside(value, depth=3)

    def _call_inside(self, value: object, depth: int) -> None:
        """Calls the callable objects in a value."""
        if isinstance(value, ELEMENTS) and depth:
            for one in [*value.values()] if isinstance(value, dict) else list(value)[:_MOST_ELEMENTS]:
                self._call_inside(one, depth - 1)
        elif isinstance(value, (FunctionType, MethodType, functools.partial)) or (
            callable(value) and not isinstance(value, (type, BuiltinFunctionType)) and hasattr(value, "__dict__")
        ):
            self.origin(value)
            self.call_one(Seen(value), [FREE], ("**",), None)

    def _call_function(self, function: FunctionType, arguments: list[Value], names: tuple[str, ...]) -> Value:
        if is_known(function.__module__):
            return self._call_library_function(function.__name__, FREE, arguments, names)
        defaults = FREE.union(*map(self.origin, function.__defaults__ or ()))
        defaults = defaults.union(*map(self.origin, (function.__kwdefaults__ or {}).values()))
        return self._execute(function, function.__code__, function.__globals__, arguments, names, defaults, None)

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
        """Executes a function's code with these arguments, once for equal ones."""
        call = (key, tuple(arguments), names)
        if call in self._results:
            return self._results[call]
        if call in self._running:
            return FREE.union(*arguments)
        if len(self._running) > _DEEPEST:
            raise Unclear("calls within calls")
        local = bound_arguments(code, arguments, names, defaults)
        cells = {name: local.get(name, FREE) for name in code.co_cellvars}
        free = frozenset() if around else frozenset(code.co_freevars)
        if isinstance(key, FunctionType):
            cells |= zip(code.co_freevars, map(self._value_of_cell, key.__closure__ or ()), strict=True)
        self.read.update(one for one in code.co_consts if isinstance(one, str) and one.isidentifier())
        frame = Frame(code, named, local, cells, local.get(next(iter(code.co_varnames), ""), FREE), free, around=around)
        self._running.add(call)
        try:
            made = self.execute(frame)
        finally:
            self._running.discard(call)
        if around is None:
            self._results[call] = made
        return made

    def _value_of_cell(self, cell: CellType) -> Value:
        try:
            return self.origin(cell.cell_contents)
        except ValueError:  # not filled yet
            return FREE


_OF_MODULES = vars(torch.nn.Module).keys() - {"forward", "__call__"}
