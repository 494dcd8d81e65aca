"""The arguments of augmentation policies' operations, from drawn magnitudes, for a whole batch: timm's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from headrace._recipe.steps.draw_columns import Magnitude, PolicyNumber

Float64Array = npt.NDArray[np.float64]

_LEVEL_1 = 10.0  # the magnitude of level 1
_SMALLEST = 2.0**-54  # a uniform of 0 stands for the numbers below 2^-53
_STANDARD = NormalDist()


def normals(uniforms: Float64Array) -> Float64Array:
    """Returns the numbers of the standard normal distribution below which it has these shares, of the same shape."""
    given = np.maximum(uniforms, _SMALLEST).ravel().tolist()
    return np.array([_STANDARD.inv_cdf(one) for one in given]).reshape(uniforms.shape)


def magnitudes(magnitude: Magnitude, draws: Float64Array) -> Float64Array:
    """Returns the magnitudes, (n,), of draws (n, k)."""
    drawn = draws[:, magnitude.draw]
    if math.isinf(magnitude.std):
        return np.clip(drawn * magnitude.mean, 0.0, magnitude.most)
    return np.clip(magnitude.mean + drawn * magnitude.std, 0.0, magnitude.most)


def policy_arguments(column: PolicyNumber, draws: Float64Array) -> Float64Array:
    """Returns the arguments, float64 (n,), for draws (n, k)."""
    made = arguments_of_operation(
        column.rule, magnitudes(column.magnitude, draws), draws[:, column.way], column.constants
    )
    if column.among is None:
        return made
    at, low, high = column.among
    return np.where((low <= draws[:, at]) & (draws[:, at] < high), made, 0.0)


def arguments_of_operation(
    rule: str, magnitude: npt.ArrayLike, way: npt.ArrayLike, constants: tuple[float, ...]
) -> Float64Array:
    """Returns the arguments of an operation.

    Args:
        rule: how they follow from the level, a tenth of the magnitude.
        magnitude: numbers, 0 or more.
        way: uniform in [0, 1): where there is a sign it is negative below 0.5.
        constants: what else the rule needs.
    """
    return _RULES[rule](np.asarray(magnitude, np.float64) / _LEVEL_1, np.asarray(way, np.float64), *constants)


def has_sign(rule: str) -> bool:
    """Returns whether the sign changes the arguments of a rule."""
    return rule in _SIGNED


def _sign(way: Float64Array) -> Float64Array:
    return np.where(way < 0.5, -1.0, 1.0)


def _signed_move(level: Float64Array, way: Float64Array, most: float, unit: float = 1.0) -> Float64Array:
    return _sign(way) * (level * most) * unit


def _factor(level: Float64Array, way: Float64Array) -> Float64Array:
    return level * 1.8 + 0.1


def _factor_either_way(level: Float64Array, way: Float64Array) -> Float64Array:
    return np.maximum(0.1, 1.0 + _sign(way) * (level * 0.9))


def _saturation(level: Float64Array, way: Float64Array) -> Float64Array:
    return 1.0 - np.clip(0.5 + 0.5 * level, 0.5, 1.0)


def _posterize_bits(level: Float64Array, way: Float64Array, none: float, each: float, fewest: float) -> Float64Array:
    """From `none` bits at level 0 on; -1 for fewer than Pillow accepts."""
    bits = np.clip(none + each * np.trunc(level * 4), 0.0, 8.0)
    return np.where(bits < fewest, -1.0, bits)


def _threshold(level: Float64Array, way: Float64Array, none: float, each: float) -> Float64Array:
    return none + each * np.minimum(256.0, np.trunc(level * 256))


def _addend(level: Float64Array, way: Float64Array) -> Float64Array:
    return np.minimum(128.0, np.trunc(level * 110))


def _radius(level: Float64Array, way: Float64Array) -> Float64Array:
    return np.clip(0.1 + (2.0 - 0.1) * level, 0.1, 2.0)


def _any_radius(level: Float64Array, way: Float64Array) -> Float64Array:
    """Uniform between 0.1 and twice the level, by the column of the sign, which a radius does not have."""
    return 0.1 + (2.0 * np.clip(level, 0.0, 1.0) - 0.1) * way


_SIGNED: dict[str, Callable[..., Float64Array]] = {
    "angle": _signed_move,
    "move": _signed_move,
    "factor_either_way": _factor_either_way,
}
_RULES: dict[str, Callable[..., Float64Array]] = {
    **_SIGNED,
    "factor": _factor,
    "saturation": _saturation,
    "bits": _posterize_bits,
    "threshold": _threshold,
    "addend": _addend,
    "radius": _radius,
    "any_radius": _any_radius,
}
