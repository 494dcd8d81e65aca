"""The native modules and their shared core are built hardened: what their ELF headers and imported symbols say."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace import _core, _gpu

DYNAMIC, STACK, RELRO = 2, 0x6474E551, 0x6474E552  # types of program headers
FLAGS, FLAGS_1 = 30, 0x6FFFFFFB  # tags of dynamic entries
BIND_NOW, NOW, EXECUTABLE = 0x8, 0x1, 0x1

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")


class Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    size: int


def segments(data: bytes) -> list[Segment]:
    """The program headers of a 64-bit little-endian ELF file."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for number in range(count):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, start + number * size)
        found.append(Segment(kind, flags, offset, length))
    return found


def dynamic(data: bytes) -> dict[int, int]:
    """The entries of the dynamic section by tag; of several with one tag, the last."""
    (segment,) = (one for one in segments(data) if one.type == DYNAMIC)
    return dict(struct.iter_unpack("<QQ", data[segment.offset : segment.offset + segment.size]))


CORE = Path(_core.__file__).with_name("libheadrace_core.so")


@pytest.fixture(params=[Path(_core.__file__), Path(_gpu.__file__), CORE], ids=["_core", "_gpu", "libheadrace_core"])
def module(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()


def test_tables_of_imported_functions_are_read_only_from_the_start(module: bytes) -> None:
    assert [one.type for one in segments(module)].count(RELRO) == 1
    entries = dynamic(module)
    assert entries.get(FLAGS, 0) & BIND_NOW or entries.get(FLAGS_1, 0) & NOW


def test_the_stack_is_not_executable(module: bytes) -> None:
    (stack,) = (one for one in segments(module) if one.type == STACK)
    assert not stack.flags & EXECUTABLE


def test_the_stack_is_protected(module: bytes) -> None:
    """A protected function calls `__stack_chk_fail`."""
    assert b"\0__stack_chk_fail\0" in module


@pytest.mark.parametrize("path", [Path(_gpu.__file__), CORE], ids=["_gpu", "libheadrace_core"])
def test_functions_are_fortified(path: Path) -> None:
    """A fortified function calls `__memcpy_chk` and the like. `_core` converts arguments and has none to fortify."""
    assert any(name in path.read_bytes() for name in (b"\0__memcpy_chk\0", b"\0__memmove_chk\0", b"\0__memset_chk\0"))
