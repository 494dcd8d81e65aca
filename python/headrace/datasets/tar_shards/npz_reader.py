"""Reads the arrays in the bytes of an .npz file. numpy parses each header as a Python expression, which takes most of
the time where a thousand small files are read."""

from __future__ import annotations

import io
import re
import tokenize
import zipfile
import zlib

import numpy as np

from headrace._base.types import Array

# What numpy's writer makes of an array of numbers or bytes with at most one axis.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([|<][uibS][0-9]+)', 'fortran_order': False, 'shape': \(([0-9]*),?\), \} *\n",
    re.DOTALL,
)
# Of zipfile, zlib and numpy, which reads headers with Python's tokenizer. RuntimeError: it is encrypted.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    OSError,
)
_PREFIX = 10  # bytes before a header; the last two say how long it is


def stored_arrays(data: bytes) -> dict[str, Array]:
    """Returns the arrays of a file by their names.

    Raises:
        ValueError: it is damaged, encrypted, or holds pickles.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return {name.removesuffix(".npy"): _parse_npy(file.read(name)) for name in file.namelist()}
    except _DAMAGE as error:
        raise ValueError(f"the file is damaged: {error!r}") from error


def _parse_npy(held: bytes) -> Array:
    match = _HEADER.match(held)
    if match is None or match.end() != _PREFIX + int.from_bytes(held[_PREFIX - 2 : _PREFIX], "little"):
        made: Array = np.lib.format.read_array(io.BytesIO(held), allow_pickle=False)
        return made
    count = int(match[2]) if match[2] else 1
    flat: Array = np.frombuffer(held, np.dtype(match[1].decode()), count, match.end())
    return (flat if match[2] else flat.reshape(())).copy()
