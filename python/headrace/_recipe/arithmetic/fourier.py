"""A Fourier transform whose every operation and their order are defined: tables, sums, differences and products.

Libraries' transforms differ in their last bits between versions and processors. This one is a sequence of exactly
rounded operations, so `csrc/core/textures` computes the same numbers.
"""

from __future__ import annotations

import functools
import math

import torch

Complex = tuple[torch.Tensor, torch.Tensor]  # real and imaginary parts


@functools.cache
def radices_of(length: int) -> tuple[int, ...]:
    """Returns the radices of the passes: 4 as often as it divides `length`, then 2, then odd primes, ascending."""
    found = []
    radix = 4
    while length > 1:
        while length % radix == 0:
            found.append(radix)
            length //= radix
        radix = {4: 2, 2: 3}.get(radix, radix + 2)
        if radix * radix > length > 2:  # what is left is a prime
            radix = length
    return tuple(found)


@functools.lru_cache(maxsize=16)
def cosine_and_sine_table(length: int) -> torch.Tensor:
    """Returns cosine and sine of 2 pi k / length, float64 (2, length); do not change it."""
    rows = [[_cosine(8 * k - shift, length) for k in range(length)] for shift in (0, 2 * length)]
    return torch.tensor(rows, dtype=torch.float64, device="cpu")


def _cosine(eighths: int, length: int) -> float:
    """Returns the cosine of 2 pi eighths / (8 length), by a function of an angle of at most 45 degrees."""
    at = abs(eighths) % (8 * length)
    at = min(at, 8 * length - at)
    if at > 2 * length:
        return -_cosine(4 * length - at, length)
    if at > length:
        return math.sin(math.pi * (2 * length - at) / (4 * length))
    return math.cos(math.pi * at / (4 * length))


def fourier_transform(real: torch.Tensor, imaginary: torch.Tensor) -> Complex:
    """Returns the transform along the first axis: sum over j of x[j] exp(-2 pi i j k / n) at k.

    One pass per factor (Stockham's order, so that no pass sorts). A pass combines `radix` values that are n / radix
    apart, then multiplies by the twiddle factors; the last pass has none. With the parts of the argument and of the
    result swapped, it is n times the inverse transform.

    Args:
        real, imaginary: float64 (n, lanes).
    """
    length, lanes = real.shape
    cosine, sine = cosine_and_sine_table(length)
    rest, stride = length, 1
    for radix in radices_of(length):
        after = rest // radix
        shape = (radix, after, stride, lanes)
        real, imaginary = _butterfly(real.reshape(shape), imaginary.reshape(shape), cosine, sine)
        if after > 1:
            at = torch.arange(radix, device="cpu")[1:, None] * torch.arange(after, device="cpu") * stride
            c, s = cosine[at][..., None, None], sine[at][..., None, None]
            turned = real[1:] * c + imaginary[1:] * s, imaginary[1:] * c - real[1:] * s
            real, imaginary = torch.cat([real[:1], turned[0]]), torch.cat([imaginary[:1], turned[1]])
        real, imaginary = (part.transpose(0, 1).reshape(length, lanes) for part in (real, imaginary))
        rest, stride = after, stride * radix
    return real, imaginary


def _butterfly(a: torch.Tensor, b: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> Complex:
    """Returns the transform along the first axis, of radix 2, 4 or an odd prime, of values a + b i."""
    radix = len(a)
    if radix == 2:
        return torch.stack([a[0] + a[1], a[0] - a[1]]), torch.stack([b[0] + b[1], b[0] - b[1]])
    if radix == 4:
        even, odd = (a[0] + a[2], b[0] + b[2]), (a[1] + a[3], b[1] + b[3])
        off_even, off_odd = (a[0] - a[2], b[0] - b[2]), (a[1] - a[3], b[1] - b[3])
        real = [even[0] + odd[0], off_even[0] + off_odd[1], even[0] - odd[0], off_even[0] - off_odd[1]]
        imaginary = [even[1] + odd[1], off_even[1] - off_odd[0], even[1] - odd[1], off_even[1] + off_odd[0]]
        return torch.stack(real), torch.stack(imaginary)
    return _odd_butterfly(a, b, cosine, sine)


def _odd_butterfly(a: torch.Tensor, b: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> Complex:
    """Pairs value k with value radix - k: cosines multiply their sums, sines their differences."""
    radix, step = len(a), len(cosine) // len(a)
    half = radix // 2
    back = torch.arange(radix - 1, half, -1, device="cpu")
    sums = a[1 : half + 1] + a[back], b[1 : half + 1] + b[back]
    differences = a[1 : half + 1] - a[back], b[1 : half + 1] - b[back]
    first = [a[0], b[0]]
    even = [a[:1].expand_as(sums[0]), b[:1].expand_as(sums[1])]
    odd = [torch.zeros_like(sums[0]), torch.zeros_like(sums[1])]
    for k in range(half):
        at = torch.arange(1, half + 1, device="cpu") * (k + 1) % radix * step
        c, s = (table[at][:, None, None, None] for table in (cosine, sine))
        for part in (0, 1):
            first[part] = first[part] + sums[part][k]
            even[part] = even[part] + c * sums[part][k]
            odd[part] = odd[part] + s * differences[part][k] if k else s * differences[part][k]
    real = [first[0][None], even[0] + odd[1], (even[0] - odd[1]).flip(0)]
    imaginary = [first[1][None], even[1] - odd[0], (even[1] + odd[0]).flip(0)]
    return torch.cat(real), torch.cat(imaginary)
