"""The Fourier transform of defined operations against numpy's, within a stated bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from headrace._recipe.arithmetic import fourier

BOUND = 1e-12  # of the largest value; measured: 1.2e-15 and less

#: Each radix, powers of them, all of them at once, a square of a large prime, and large primes.
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 25, 49, 77, 97, 121, 224, 384, 1009, 2310)


@pytest.mark.parametrize("length", LENGTHS)
def test_transforms_equal_numpys(length: int) -> None:
    rng = np.random.default_rng(length)
    values = rng.standard_normal((length, 3)) + 1j * rng.standard_normal((length, 3))
    real, imaginary = fourier.fourier_transform(
        torch.from_numpy(values.real.copy()), torch.from_numpy(values.imag.copy())
    )
    truth = np.fft.fft(values, axis=0)
    assert np.abs(real.numpy() + 1j * imaginary.numpy() - truth).max() <= BOUND * np.abs(truth).max()
    back_imaginary, back_real = fourier.fourier_transform(imaginary, real)
    assert np.abs((back_real.numpy() + 1j * back_imaginary.numpy()) / length - values).max() <= BOUND


def test_factors_multiply_to_the_length_and_are_in_order() -> None:
    for length in range(1, 3000):
        found = fourier.radices_of(length)
        assert math.prod(found) == length
        odd = [one for one in found if one % 2]
        assert list(found) == [4] * found.count(4) + [2] * found.count(2) + sorted(odd) and found.count(2) <= 1
        assert all(one % divisor for one in odd for divisor in range(3, math.isqrt(one) + 1, 2))


def test_turns_are_exact_where_they_can_be() -> None:
    """Quarters of a turn and mirrored angles; all others within two units in the last place below 1."""
    cosine, sine = (table.tolist() for table in fourier.cosine_and_sine_table(48))
    assert (cosine[0], cosine[12], cosine[24], cosine[36]) == (1, 0, -1, 0)
    assert (sine[0], sine[12], sine[24], sine[36]) == (0, 1, 0, -1)
    assert cosine[4] == sine[8] == -cosine[20] == -sine[40] and cosine[6] == sine[6]
    for length in (7, 48, 97, 224):
        angles = np.arange(length, dtype=np.longdouble) * 2 * np.longdouble("3.14159265358979323846264338") / length
        for table, function in zip(fourier.cosine_and_sine_table(length).numpy(), (np.cos, np.sin), strict=True):
            assert np.abs(table - function(angles)).max() <= 2**-52
