"""Weights computed from the draws of samples: those of AugMix's chains by numpy's own Dirichlet and Beta distributions,
those of torchvision's Gaussian kernel along one axis."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from headrace._recipe.steps.draw_columns import ChainWeights, SumWeights

#: Of a share that torch draws: a byte times 1 would not be rounded down.
_LIMITS = np.finfo(np.float32).tiny, np.nextafter(np.float32(1), np.float32(0))

Float64Array = npt.NDArray[np.float64]


def chain_weights(column: ChainWeights | SumWeights, draws: Float64Array) -> Float64Array:
    """Returns the weights and the number after them, float64 (n, count + 1), rounded to float32 as the libraries do.

    Args:
        column: what is computed.
        draws: (n,), multiples of 2^-53 in [0, 1).
    """
    made = np.empty((len(draws), column.count + 1), np.float32)
    generator = np.random.RandomState(0)  # its numbers are the same in all versions of numpy
    for row, seed in zip(made, (draws * 2.0**53).astype(np.uint64).tolist(), strict=True):
        generator.seed([seed & 0xFFFFFFFF, seed >> 32])  # cheaper than a new one
        row[:-1] = generator.dirichlet([column.alpha] * column.count)
        if isinstance(column, SumWeights):
            shares = generator.dirichlet([column.alpha] * 2).astype(np.float32)
            row[-1], others = shares.clip(*_LIMITS)
            row[:-1] = row[:-1].clip(*_LIMITS) * others
        else:
            row[-1] = generator.beta(column.alpha, column.alpha)
    if isinstance(column, ChainWeights) and column.blended:
        made[:, :-1] = _shares_to_blend_factors(made[:, :-1] * made[:, -1:])
    return made.astype(np.float64)


def _shares_to_blend_factors(shares: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns the factors, (n, chains), of blends one after the other that give each chain its share of the result.

    Where nothing is left for a chain its factor is 0; timm divides 0 by 0.
    """
    factors = np.empty_like(shares)
    left = np.ones(len(shares), np.float32)
    for chain in range(shares.shape[1] - 1, -1, -1):
        factor = np.divide(shares[:, chain], left, out=np.zeros_like(left), where=left != 0)
        factors[:, chain] = factor
        left *= np.float32(1) - factor
    return factors


def gaussian_weights(sigma: npt.NDArray[np.float64], size: int, softmax: bool) -> npt.NDArray[np.float32]:
    """Returns the kernel weights, (n, size), by the operations of torchvision's ``_get_gaussian_kernel1d``.

    Args:
        sigma: standard deviations in pixels, (n,).
        size: number of weights.
        softmax: whether to use v2's softmax, otherwise v1's quotient.
    """
    sigmas = torch.from_numpy(sigma.astype(np.float32))[:, None]
    if softmax:
        reach = (size - 1) / (2.0 * math.sqrt(2.0))
        weights = torch.softmax(torch.linspace(-reach, reach, size, device="cpu").div(sigmas).pow(2).neg(), dim=1)
    else:
        reach = (size - 1) * 0.5
        density = torch.exp(-0.5 * (torch.linspace(-reach, reach, size, device="cpu") / sigmas).pow(2))
        weights = density / density.sum(1, keepdim=True)
    made: npt.NDArray[np.float32] = weights.numpy()
    return made
