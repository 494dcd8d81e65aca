"""Weights of torchvision's Gaussian kernel along one axis, for many sigmas at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch


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
