"""What is changed in the copies of foreign tests before they run."""

from __future__ import annotations

import ast

_LOADERS = ("torch.utils.data", "torch.utils.data.dataloader", "torchdata.stateful_dataloader")
_IN_STRINGS = "from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader"  # scripts that tests start


def with_loader(source: str, statement: str) -> str:
    """A test file whose imports of a DataLoader are followed by `statement`, under the name that each has there."""
    if "DataLoader" not in source:
        return source
    lines = source.splitlines(keepends=True)
    for node in sorted(ast.walk(ast.parse(source)), key=lambda one: -getattr(one, "lineno", 0)):
        if not isinstance(node, ast.ImportFrom) or node.module not in _LOADERS:
            continue
        for alias in node.names:
            if alias.name in ("DataLoader", "StatefulDataLoader"):
                plain = statement.removesuffix(" as DataLoader")
                added = f"{plain} as {alias.asname or alias.name}\n"
                lines.insert(node.end_lineno or node.lineno, " " * node.col_offset + added)
    return "".join(lines).replace(f"\n{_IN_STRINGS}\n", f"\n{statement}\n")


def with_calls(source: str, statement: str) -> str:
    """A test file in which `DataLoader(...)` makes the loader of `statement`."""
    if "DataLoader" not in source:
        return source
    lines, tree = source.splitlines(keepends=True), ast.parse(source)
    names = [one.func for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
    for name in sorted(names, key=lambda one: (-one.lineno, -one.col_offset)):
        if name.id == "DataLoader":
            line = lines[name.lineno - 1]
            lines[name.lineno - 1] = f"{line[: name.col_offset]}ThatLoader{line[name.end_col_offset :]}"
    return f"{statement.removesuffix(' as DataLoader')} as ThatLoader\n" + "".join(lines)


def with_equal_types(source: str, statement: str) -> str:
    """A test file in which `type(x) is y` is `type(x) == y`: headrace defers no tensor where a program compares so."""
    lines = source.splitlines(keepends=True)
    compared = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Compare) and _asks_type(one)]
    for one in sorted(compared, key=lambda one: (-one.left.lineno, -one.left.col_offset)):
        at, begin, end = (one.left.end_lineno or 0) - 1, one.left.end_col_offset or 0, one.comparators[0].col_offset
        between = lines[at][begin:end].replace(" is not ", " != ").replace(" is ", " == ")
        lines[at] = lines[at][:begin] + between + lines[at][end:]
    return "".join(lines)


def _asks_type(compared: ast.Compare) -> bool:
    """Whether it compares what `type` returns by identity, in one line."""
    left, right = compared.left, compared.comparators[0]
    calls = [one.func for one in (left, right) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
    is_identity = isinstance(compared.ops[0], (ast.Is, ast.IsNot)) and left.end_lineno == right.lineno
    return is_identity and any(one.id == "type" for one in calls)


def unchanged(source: str, statement: str) -> str:
    """The test file as it is."""
    return source
