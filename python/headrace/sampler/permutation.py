"""Shuffles billions of samples in constant memory: a keyed permutation that is computed instead of stored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from typing import Protocol

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._base.types import State
from headrace._recipe.draws.draws import Int64Array, UInt64Array, epoch_words
from headrace._recipe.draws.seeded_sampler import Seeded

LARGEST = 2**62  # samples: two halves of 31 bits
TABLE = 2**16  # samples: up to this length the permutation is stored, in at most 512 KiB
ROUNDS = 8

# Indices computed at once: enough to amortise the overhead of numpy's calls, few enough to fit the second-level cache.
_BLOCK = 2**15
_HALF = np.uint64(32)
# The multipliers of MurmurHash3's 64-bit finaliser.
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


class PermutationSampler(Seeded, Sampler[int]):
    """Yields every sample once per epoch, in random order, in constant memory.

    ``torch.randperm`` needs 8 bytes per sample, and a list of its values 40 more. Here the sample at a position is
    computed from the position, by a Feistel network whose round function is keyed by (seed, epoch). Any part of an
    epoch can be computed without the part before it.

    Method: Luby and Rackoff ("How to construct pseudorandom permutations from pseudorandom functions", 1988), with
    halves of floor(b / 2) and ceil(b / 2) bits that are changed alternately, where b is the number of bits of the
    largest position. For lengths that are not a power of two, cycle walking (Black and Rogaway, "Ciphers with arbitrary
    finite domains", CT-RSA 2002) permutes values beyond the end again. This is a good shuffle, not a cipher. Up to
    65,536 samples the permutation is drawn and stored, 8 bytes per sample, because networks of few bits are not uniform
    (over a power of two they generate no odd permutation).

    Memory: less than 4 MiB for any length. Cost per index: 8 rounds of seven vector operations, repeated fewer than 2
    times on average; tens of nanoseconds. With four rounds small networks are measurably not random; with eight, no
    statistical test that was run distinguishes them from random.

    The order depends only on (length, seed, epoch): it is the same on every machine and in every process.

    Args:
        data_source: an object with a length, or the length itself, from 1 to 2**62. Only the length is kept.
        seed: any integer; only its low 64 bits are used.

    Attributes:
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: the length or the seed is not an integer.
        ValueError: the length is out of range.
    """

    def __init__(self, data_source: Sized | int, seed: int = 0) -> None:
        self._length = _length_of(data_source)
        self.seed: int = whole_number("seed", seed)
        self.epoch = 0
        self._made: tuple[int, Permutation] | None = None  # (epoch, its permutation), the newest

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[int]:
        """Iterates over the current epoch from position `start` on; the samples before it cost nothing.

        Args:
            start: number of samples to skip, in [0, length].

        Raises:
            TypeError: `start` is not an integer.
            ValueError: `start` is out of range.
        """
        first = checked_start(start, self._length)
        return itertools.chain.from_iterable(_iterate_in_blocks(self._permutation(), first, self._length))

    def at(self, positions: npt.ArrayLike) -> Int64Array:
        """Returns the samples at the given positions of the current epoch.

        Args:
            positions: integers of any shape, each in [0, length).

        Returns:
            Sample indices, int64, of the same shape.

        Raises:
            TypeError: `positions` are not integers.
            ValueError: a position is out of range.
        """
        given = np.asarray(positions)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"positions must be an array of integers, not of {given.dtype}")
        outside = given[(given < 0) | (given >= self._length)]
        if outside.size:
            raise ValueError(f"position {outside.flat[0]} is not in an epoch of {self._length} samples")
        flat, permutation = given.astype(np.int64).reshape(-1), self._permutation()
        for begin in range(0, len(flat), _BLOCK):
            flat[begin : begin + _BLOCK] = permutation.at(flat[begin : begin + _BLOCK])
        return flat.reshape(given.shape)

    def _permutation(self) -> Permutation:
        if self._made is None or self._made[0] != self.epoch:
            self._made = self.epoch, permutation_of(self._length, self.seed, self.epoch)
        return self._made[1]

    def __getstate__(self) -> State:
        return {**self.__dict__, "_made": None}


class Permutation(Protocol):
    """A permutation of [0, n)."""

    def at(self, positions: Int64Array) -> Int64Array:
        """Maps positions in range, int64 (n,), to samples, a new int64 array (n,)."""


def permutation_of(length: int, seed: int, epoch: int, stream: int = 0, table: int = TABLE) -> Permutation:
    """Returns a permutation of [0, length), the same for equal arguments.

    Args:
        length: 1 or more.
        seed, epoch, stream: see `epoch_words`.
        table: up to this length it is stored.
    """
    kind = _Stored if length <= table else _Feistel
    return kind(length, seed, epoch, stream)


class _Stored:
    """A stored permutation: positions sorted by random words. Uniform unless two words are equal (at most 2**-33)."""

    def __init__(self, length: int, seed: int, epoch: int, stream: int = 0) -> None:
        self._order = np.argsort(epoch_words(seed, epoch, stream, length), kind="stable")

    def at(self, positions: Int64Array) -> Int64Array:
        return self._order[positions]


class _Feistel:
    """An alternating Feistel network over the bits of the largest position, with cycle walking."""

    def __init__(self, length: int, seed: int, epoch: int, stream: int = 0) -> None:
        bits = max(2, (length - 1).bit_length())  # 2**bits < 2 * length, except for lengths 1 and 2
        self._length = np.uint64(length)
        self._high_bits, self._low_bits = bits // 2, bits - bits // 2
        self._keys = epoch_words(seed, epoch, stream, ROUNDS)

    def at(self, positions: Int64Array) -> Int64Array:
        values = self._encrypt_values(positions.astype(np.uint64))
        # Cycle walking ends: the cycle through a position returns to the position itself, which is below the length.
        beyond = np.flatnonzero(values >= self._length)
        while beyond.size:
            again = self._encrypt_values(values[beyond])
            values[beyond] = again
            beyond = beyond[again >= self._length]
        return values.view(np.int64)

    def _encrypt_values(self, values: UInt64Array) -> UInt64Array:
        low_bits = np.uint64(self._low_bits)
        changed, other = values >> low_bits, values & np.uint64(2**self._low_bits - 1)
        changed_bits, other_bits = self._high_bits, self._low_bits
        mixed, part = np.empty_like(values), np.empty_like(values)
        for key in self._keys:
            # A half has at most 31 bits, the key 64. Products wrap modulo 2**64; the round takes their high bits,
            # which depend on all lower bits.
            np.bitwise_xor(other, key, out=mixed)
            np.multiply(mixed, _FIRST, out=mixed)
            np.right_shift(mixed, _HALF, out=part)
            np.bitwise_xor(mixed, part, out=mixed)
            np.multiply(mixed, _SECOND, out=mixed)
            np.right_shift(mixed, np.uint64(64 - changed_bits), out=mixed)
            np.bitwise_xor(changed, mixed, out=changed)
            changed, other, changed_bits, other_bits = other, changed, other_bits, changed_bits
        # After an even number of rounds both halves are in their original positions.
        np.left_shift(changed, low_bits, out=changed)
        np.bitwise_or(changed, other, out=changed)
        return changed


def _iterate_in_blocks(permutation: Permutation, start: int, stop: int) -> Iterator[list[int]]:
    for begin in range(start, stop, _BLOCK):
        yield permutation.at(np.arange(begin, min(begin + _BLOCK, stop))).tolist()


def checked_start(start: object, length: int) -> int:
    """Returns the position where an iteration begins.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is not in [0, length].
    """
    first = whole_number("start", start)
    if not 0 <= first <= length:
        raise ValueError(f"start must be from 0 to {length}, the number of samples, not {first}")
    return first


def _length_of(data_source: object) -> int:
    if not hasattr(type(data_source), "__index__") and not hasattr(type(data_source), "__len__"):
        raise TypeError(f"data_source must have a length or be an integer, not {type(data_source).__name__}")
    length = len(data_source) if isinstance(data_source, Sized) else whole_number("a length", data_source)
    if not 1 <= length <= LARGEST:
        raise ValueError(f"a permutation needs from 1 to 2**62 samples, not {length}")
    return length
