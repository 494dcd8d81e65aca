"""Executes a function's bytecode, along all its paths, on sets of what its values may be."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType

from headrace._lowering.python_steps.opcodes import Opcodes
from headrace._lowering.python_steps.value_sets import FREE, VERSION, Frame, FrameState, Unclear, Value, pop

#: Goes on at the offset of an instruction, with a stack.
Jump = Callable[[int, list[Value | None]], None]

_NOTHING = frozenset(
    """NOP RESUME CACHE EXTENDED_ARG PRECALL MAKE_CELL COPY_FREE_VARS SETUP_ANNOTATIONS GEN_START POP_BLOCK NOT_TAKEN
    DELETE_FAST DELETE_DEREF TO_BOOL GET_YIELD_FROM_ITER KW_NAMES""".split()  # noqa: SIM905
)
_POPS = {
    **{"POP_TOP": 1, "POP_ITER": 1, "END_FOR": 2 if VERSION == (3, 12) else 1},
    "POP_EXCEPT": 3 if VERSION == (3, 10) else 1,
}
#: Opcodes that put numbers, text or new things in the place of some values.
_MAKES_FREE = {
    **{"GET_LEN": (0, 1), "FORMAT_SIMPLE": (1, 1), "CONVERT_VALUE": (1, 1), "FORMAT_WITH_SPEC": (2, 1)},
    **{"UNARY_NOT": (1, 1), "IS_OP": (2, 1), "CHECK_EXC_MATCH": (1, 1), "LOAD_BUILD_CLASS": (0, 1)},
    **{"LOAD_ASSERTION_ERROR": (0, 1), "LOAD_SMALL_INT": (0, 1), "RETURN_GENERATOR": (0, 1), "PUSH_EXC_INFO": (0, 1)},
    **{"WITH_EXCEPT_START": (0, 1)},
}
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")


class Frames(Opcodes):
    """Executes frames; a subclass defines what is done to the values."""

    def execute(self, frame: Frame) -> Value:
        """Runs all paths of a frame; returns what it may return or yield."""
        found = list(dis.get_instructions(frame.code))
        numbers = {one.offset: number for number, one in enumerate(found)}
        handlers = _exception_handlers(frame.code)
        targets = {numbers[one.argval] for one in found if one.opcode in _JUMPS}
        while True:
            frame.changed = False
            states = {0: FrameState([], dict(frame.local))}
            waiting = [0]
            while waiting:
                number = waiting.pop()
                self._run_instructions(frame, found, numbers, handlers, targets, states, number, waiting)
            if not frame.changed:
                return frame.returned

    def _run_instructions(
        self,
        frame: Frame,
        found: list[dis.Instruction],
        numbers: dict[int, int],
        handlers: list[tuple[int, int, int, int, bool]],
        targets: set[int],
        states: dict[int, FrameState],
        number: int,
        waiting: list[int],
    ) -> None:
        """Runs from an instruction to a jump target, a return or an error."""
        state = FrameState(list(states[number].stack), dict(states[number].local))

        def reach(offset: int, stack: list[Value | None]) -> None:
            place, new = numbers[offset], FrameState(list(stack), dict(state.local))
            if place not in states:
                states[place] = new
                waiting.append(place)
            elif states[place].join(new):
                waiting.append(place)

        names: tuple[str, ...] = ()
        while True:
            one = found[number]
            self.executed += 1
            if self.executed > self.most_instructions:
                raise Unclear("too much code")
            for start, end, target, depth, lasti in handlers:
                if start <= one.offset < end:
                    reach(target, [*state.stack[:depth], *([FREE] if lasti else []), FREE])
            if one.opname == "KW_NAMES":
                names = frame.code.co_consts[one.arg or 0]
            elif one.opname in ("CALL_KW", "CALL_FUNCTION_KW"):
                names = _named_before(found, number)
            ends = self._execute_instruction(one, state, frame, names, reach)
            if one.opname.startswith("CALL"):
                names = ()
            number += 1
            if ends:
                return
            if number in targets:
                reach(found[number].offset, state.stack)
                return

    def _execute_instruction(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: tuple[str, ...], reach: Jump
    ) -> bool:
        """Does an instruction; returns whether the next one does not follow."""
        op, stack = one.opname, state.stack
        if op in _NOTHING:
            return False
        if op in _POPS:
            del stack[-_POPS[op] :]
            return False
        if op in _MAKES_FREE:
            pops, pushes = _MAKES_FREE[op]
            del stack[len(stack) - pops :]
            stack.extend([FREE] * pushes)
            return False
        if op in _ENDS:
            if op == "RETURN_VALUE":
                frame.returned |= pop(stack)
            return True
        # Each executes the opcodes of its group and returns as `_execute_instruction` does; None: the opcode is of
        # another group.
        for do in (
            self._execute_variable,
            self._execute_shuffle,
            self._execute_jump,
            self._execute_build,
            self._execute_operation,
            self._execute_call,
        ):
            ends = do(one, state, frame, names, reach)
            if ends is not None:
                return bool(ends)
        raise Unclear(op)

    def _execute_jump(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: tuple[str, ...], reach: Jump
    ) -> bool | None:
        op, stack, target = one.opname, state.stack, one.argval
        if op in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"):
            reach(target, stack)
            return True
        if op.startswith("POP_JUMP") or op == "JUMP_IF_NOT_EXC_MATCH":
            del stack[-(2 if op == "JUMP_IF_NOT_EXC_MATCH" else 1) :]
            reach(target, stack)
        elif op in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
            reach(target, stack)
            stack.pop()
        elif op == "FOR_ITER":
            # From 3.12 on, END_FOR or what follows it pops the iterator and a placeholder for the missing item.
            reach(target, stack[:-1] if VERSION < (3, 12) else [*stack, FREE])
            stack.append(self.item(stack[-1] or FREE))
        elif op in ("SETUP_FINALLY", "SETUP_WITH"):  # 3.10: the handler finds six values of the exception
            entered = self._enter_context(stack, frame) if op == "SETUP_WITH" else None
            reach(target, [*stack, *[FREE] * 6])
            if entered is not None:
                stack.append(entered)
        else:
            return None
        return False

    def _execute_operation(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: object, reach: object
    ) -> bool | None:
        op, stack = one.opname, state.stack
        if op in ("LOAD_ATTR", "LOAD_METHOD"):
            found = self.attribute(pop(stack), one.argval, frame)
            method = op == "LOAD_METHOD" or (VERSION >= (3, 12) and (one.arg or 0) & 1)
            stack.extend([None, found] if method else [found])
        elif op == "LOAD_SUPER_ATTR":
            del stack[-3:]
            found = self.attribute(self.super_(frame), one.argval, frame)
            stack.extend([None, found] if (one.arg or 0) & 1 else [found])
        elif op in ("STORE_ATTR", "DELETE_ATTR"):
            target = pop(stack)
            if op == "STORE_ATTR":
                self.store(target, pop(stack))
            self.change(target, str(one.argval))
        elif op in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"):
            parts = {"STORE_SUBSCR": 3, "DELETE_SUBSCR": 2, "STORE_SLICE": 4}[op]
            target = stack[-2 if op != "STORE_SLICE" else -3] or FREE
            if op != "DELETE_SUBSCR":
                self.store(target, stack[-parts] or FREE)
            key = "" if op == "STORE_SLICE" else self.text(stack[-1] or FREE)
            del stack[-parts:]
            self.change(target, key)
        elif op == "BINARY_SLICE":
            del stack[-2:]
            stack.append(self.item(pop(stack)))
        elif op == "BINARY_SUBSCR" or (op == "BINARY_OP" and one.argrepr == "[]"):
            stack.pop()
            stack.append(self.item(pop(stack)))
        elif op.startswith(("BINARY_", "INPLACE_")) or op in ("COMPARE_OP", "CONTAINS_OP"):
            right, left = pop(stack), pop(stack)
            in_place = op.startswith("INPLACE") or (op == "BINARY_OP" and one.argrepr.endswith("="))
            stack.append(self.operate(op, left, right, in_place))
        elif op.startswith("UNARY_"):
            stack.append(self.operate(op, pop(stack), FREE, False))
        else:
            return None
        return False

    def _execute_call(
        self, one: dis.Instruction, state: FrameState, frame: Frame, names: tuple[str, ...], reach: Jump
    ) -> bool | None:
        op, stack, count = one.opname, state.stack, one.arg or 0
        if op in ("CALL_FUNCTION", "CALL_METHOD", "CALL"):
            callee, arguments = _pop_call(stack, count, two=op != "CALL_FUNCTION")
            stack.append(self.call(callee, arguments, names, frame))
        elif op in ("CALL_FUNCTION_KW", "CALL_KW"):
            stack.pop()
            callee, arguments = _pop_call(stack, count, two=op == "CALL_KW")
            stack.append(self.call(callee, arguments, names, frame))
        elif op == "CALL_FUNCTION_EX":
            keywords = FREE
            if count & 1 or VERSION >= (3, 14):
                keywords = stack.pop() or FREE
            rest = self.item(pop(stack)) | keywords
            callee, _ = _pop_call(stack, 0, two=VERSION >= (3, 11))
            stack.append(self.call(callee, [rest], ("**",), frame))
        else:
            return None
        return False


_JUMPS = {*dis.hasjabs, *dis.hasjrel}


def _named_before(found: list[dis.Instruction], number: int) -> tuple[str, ...]:
    """Returns the names of the keyword arguments of a call: the constant that is loaded just before it."""
    number -= 1
    while found[number].opname in ("CACHE", "EXTENDED_ARG"):
        number -= 1
    names = found[number].argval
    if not isinstance(names, tuple):
        raise Unclear("keyword arguments")
    return names


def _pop_call(stack: list[Value | None], count: int, *, two: bool) -> tuple[Value, list[Value]]:
    """Takes a call's arguments and callee off the stack.

    Args:
        two: whether the callee has two places: one is NULL, or the second is the first argument.
    """
    arguments = [one or FREE for one in stack[len(stack) - count :]]
    del stack[len(stack) - count :]
    upper = stack.pop()
    if not two:
        return upper or FREE, arguments
    lower = stack.pop()
    if lower is None or upper is None:
        return (upper if lower is None else lower) or FREE, arguments
    return lower, [upper, *arguments]


def _exception_handlers(code: CodeType) -> list[tuple[int, int, int, int, bool]]:
    """Returns (first offset, end, offset of the handler, depth of the stack, whether the offset is pushed, too)."""
    if VERSION < (3, 11):
        return []
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return [(one.start, one.end, one.target, one.depth, one.lasti) for one in entries]
