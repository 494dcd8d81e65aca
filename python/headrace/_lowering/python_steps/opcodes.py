"""The opcodes of CPython 3.10 to 3.14 that move values between variables and the stack, or build new ones."""

from __future__ import annotations

import builtins
import dis
import sys
from types import CodeType

from headrace._lowering.python_steps.value_sets import FREE, VERSION, Frame, FrameState, Inner, Unclear, Value, pop


class Opcodes:
    """What an attribute, an item, a call and a change mean, a subclass defines."""

    most_instructions = 30_000

    def __init__(self) -> None:
        self.executed = 0
        self._inner: dict[object, Inner] = {}

    # ---- for subclasses ----------------------------------------------------------------------------------------------

    def origin(self, found: object) -> Value:
        raise NotImplementedError

    def attribute(self, value: Value, name: str, frame: Frame) -> Value:
        raise NotImplementedError

    def item(self, value: Value) -> Value:
        raise NotImplementedError

    def call(self, callee: Value, arguments: list[Value], names: tuple[str, ...], frame: Frame) -> Value:
        raise NotImplementedError

    def operate(self, name: str, left: Value, right: Value, in_place: bool) -> Value:
        raise NotImplementedError

    def change(self, target: Value, what: str) -> None:
        raise NotImplementedError

    def store(self, target: Value, value: Value) -> None:
        """Code puts a value into an object."""

    def change_name(self, name: str) -> None:
        """Code stores a global, or a variable of a function that has returned."""
        raise NotImplementedError

    def constant(self, value: object) -> Value:
        """Returns what a constant is."""
        return FREE

    def text(self, key: Value) -> str:
        """Returns the name of an item, if it matters."""
        return ""

    def import_(self, name: str) -> Value:
        return self.origin(sys.modules[name]) if name in sys.modules else FREE

    # ---- opcodes: None if it is another one ----------------------------------------------------------------------

    def _execute_variable(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: object, reach: object
    ) -> bool | None:
        op, stack, name = one.opname, state.stack, one.argval
        if op in ("LOAD_CONST", "LOAD_COMMON_CONSTANT"):
            stack.append(self.constant(name) if op == "LOAD_CONST" else self._constant_origin(name))
            if isinstance(name, CodeType):
                stack[-1] = frozenset([name])
        elif op in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR"):
            stack.append(self._local(name, state, frame))
        elif op in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
            stack.extend(self._local(each, state, frame) for each in name)
        elif op in ("STORE_FAST", "STORE_FAST_MAYBE_NULL"):
            self._store(name, pop(stack), state, frame)
        elif op == "STORE_FAST_LOAD_FAST":
            self._store(name[0], pop(stack), state, frame)
            stack.append(self._local(name[1], state, frame))
        elif op == "STORE_FAST_STORE_FAST":
            self._store(name[0], pop(stack), state, frame)
            self._store(name[1], pop(stack), state, frame)
        elif op in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = self.global_(name, frame)
            null = op == "LOAD_GLOBAL" and VERSION >= (3, 11) and (one.arg or 0) & 1
            stack.extend([None, value] if null else [value])
        elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            stack.append(frame.cell(name) or FREE)
        elif op == "LOAD_CLOSURE":
            stack.append(FREE)
        elif op == "STORE_DEREF":
            frame.fill(name, pop(stack))
            if name in frame.free:
                self.change_name(name)
        elif op in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            if op == "STORE_GLOBAL":
                stack.pop()
            self.change_name(name)
        elif op == "IMPORT_NAME":
            del stack[-2:]
            stack.append(self.import_(name))
        elif op == "IMPORT_FROM":
            stack.append(self.attribute(stack[-1] or FREE, name, frame))
        else:
            return None
        return False

    def _constant_origin(self, found: object) -> Value:
        return self.origin(found) if callable(found) and found is not AssertionError else FREE

    @staticmethod
    def _local(name: str, state: FrameState, frame: Frame) -> Value:
        shared = frame.cell(name)
        return state.local.get(name, FREE) if shared is None else shared

    @staticmethod
    def _store(name: str, value: Value, state: FrameState, frame: Frame) -> None:
        if frame.cell(name) is not None:
            frame.fill(name, value)
        else:
            state.local[name] = value

    def global_(self, name: str, frame: Frame) -> Value:
        """Returns what a global name may be."""
        missing = object()
        if name.startswith("@"):  # what pytest inserts when it rewrites assertions
            return FREE
        value = frame.named.get(name, getattr(builtins, name, missing))
        return FREE if value is missing else self.origin(value)

    def _execute_shuffle(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: object, reach: object
    ) -> bool | None:
        op, stack, count = one.opname, state.stack, one.arg or 0
        if op == "PUSH_NULL":
            stack.append(None)
        elif op == "DUP_TOP":
            stack.append(stack[-1])
        elif op == "DUP_TOP_TWO":
            stack.extend(stack[-2:])
        elif op == "COPY":
            stack.append(stack[-count])
        elif op == "SWAP":
            stack[-1], stack[-count] = stack[-count], stack[-1]
        elif op in ("ROT_TWO", "ROT_THREE", "ROT_FOUR", "ROT_N"):
            depth = {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}.get(op, count)
            stack.insert(len(stack) - depth, stack.pop())
        else:
            return None
        return False

    def _execute_build(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: object, reach: object
    ) -> bool | None:
        op, stack, count = one.opname, state.stack, one.arg or 0
        if op in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"):
            self._merge_stack_top(stack, count)
        elif op in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
            self._merge_stack_top(stack, 2 * count if op == "BUILD_MAP" else count + 1)
        elif op == "FORMAT_VALUE":
            del stack[-(2 if count & 4 else 1) :]
            stack.append(FREE)
        elif op in ("LIST_APPEND", "SET_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"):
            value = pop(stack)
            value = value if op in ("LIST_APPEND", "SET_ADD") else self.item(value)
            stack[-count] = (stack[-count] or FREE) | value
        elif op == "MAP_ADD":
            value = pop(stack) | pop(stack)
            stack[-count] = (stack[-count] or FREE) | value
        elif op == "LIST_TO_TUPLE" or (op == "CALL_INTRINSIC_1" and count not in (1, 2)):
            return False
        elif op == "UNPACK_SEQUENCE":
            stack.extend([self.item(pop(stack))] * count)
        elif op == "UNPACK_EX":
            stack.extend([self.item(pop(stack))] * ((count & 0xFF) + 1 + (count >> 8)))
        elif op in ("GET_ITER", "MATCH_SEQUENCE"):
            return False if op == "GET_ITER" else None
        elif op == "BEFORE_WITH":
            stack.append(self._enter_context(stack, frame))
        elif op == "LOAD_SPECIAL":
            stack.extend([None, self.attribute(pop(stack), ("__enter__", "__exit__", "", "")[count], frame)])
        elif op == "YIELD_VALUE":
            frame.returned |= pop(stack)
            stack.append(FREE)
        elif op == "MAKE_FUNCTION":
            self._make_function(stack, frame, count)
        elif op == "SET_FUNCTION_ATTRIBUTE":
            function = pop(stack)
            given = pop(stack)
            for made in function:
                if isinstance(made, Inner):
                    made.defaults |= given
            stack.append(function)
        else:
            return None
        return False

    def _enter_context(self, stack: list[Value | None], frame: Frame) -> Value:
        """Puts ``__exit__`` in the place of a context manager; returns what ``with`` assigns."""
        manager = pop(stack)
        stack.append(self.attribute(manager, "__exit__", frame))
        return self.call(self.attribute(manager, "__enter__", frame), [], (), frame)

    @staticmethod
    def _merge_stack_top(stack: list[Value | None], count: int) -> None:
        parts = [one or FREE for one in stack[len(stack) - count :]]
        del stack[len(stack) - count :]
        stack.append(FREE.union(*parts))

    def _make_function(self, stack: list[Value | None], frame: Frame, flags: int) -> None:
        if VERSION < (3, 11):
            stack.pop()  # its name
        codes = pop(stack)
        defaults = FREE
        if VERSION < (3, 13):
            for bit in (8, 4, 2, 1):
                if flags & bit:
                    defaults |= pop(stack)
        stack.append(frozenset(self.inner(one, frame, defaults) for one in codes if isinstance(one, CodeType)))

    def inner(self, code: CodeType, frame: Frame, defaults: Value) -> Inner:
        """Returns the function of this code in a frame: the same at each pass over the frame."""
        made = self._inner.setdefault((code, frame), Inner(code, frame, defaults))
        made.defaults |= defaults
        return made

    def super_(self, frame: Frame) -> Value:
        """Returns what ``super()`` may be."""
        raise Unclear("super")
