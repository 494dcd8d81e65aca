"""The columns of a recipe's draws: how each random number of a sample is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Column:
    """Computes one draw from a uniform u in [0, 1): ``low + u (high - low)``, or e to that power if `exp`."""

    low: float = 0.0
    high: float = 1.0
    exp: bool = False


@dataclass(frozen=True)
class GaussianWeight:
    """One of the `size` weights of torchvision's Gaussian kernel along one axis.

    Attributes:
        sigma: column of the standard deviation.
        size: number of weights, in adjacent columns.
        softmax: whether to use the operations of torchvision v2, otherwise those of v1.
        first: column of the first weight.
    """

    sigma: int
    size: int
    softmax: bool
    first: int


@dataclass(frozen=True)
class WarpNumber:
    """One of the `count` numbers of a warp's matrix, or of a box, computed from draws; see `warp_matrices`.

    Attributes:
        rule: how they are computed: ``"turn"``, ``"affine"``, ``"perspective"`` or ``"box"``.
        drawn: column of the first draw that they are computed from.
        first: column of the first number; the others are adjacent.
        count: how many numbers the rule gives.
        constants: what else the rule needs.
    """

    rule: str
    drawn: int
    first: int
    count: int
    constants: tuple[float, ...] = ()


@dataclass(frozen=True)
class Normal:
    """Computes one draw from a uniform: a number of the standard normal distribution."""


@dataclass(frozen=True)
class Magnitude:
    """How strong a policy's operation is; 10 is the usual most.

    Attributes:
        draw: a Normal column; for an infinite `std` a column that is uniform in [0, 1).
        mean, std: those of the distribution. Infinite `std`: uniform between 0 and `mean`.
        most: larger numbers become this, and negative ones 0.
    """

    draw: int
    mean: float
    std: float
    most: float


@dataclass(frozen=True)
class PolicyNumber:
    """The argument of a policy's operation, computed from its magnitude; see `draws.policy_arguments`.

    Attributes:
        rule: how it is computed, a name.
        magnitude: how strong the operation is.
        way: column, uniform in [0, 1), that gives the argument's sign if it has one: negative below 0.5.
        constants: what else the rule needs.
        among: a column and bounds (low, high) for it: the argument is 0 where the column is not within [low, high),
            because another operation is done there; None: it is needed everywhere.
    """

    rule: str
    magnitude: Magnitude
    way: int
    constants: tuple[float, ...] = ()
    among: tuple[int, float, float] | None = None


@dataclass(frozen=True)
class ChainWeights:
    """One of the `count` weights of AugMix's chains, or the factor after them; see `weights_from_draws.chain_weights`.

    Attributes:
        drawn: column, uniform in [0, 1), that seeds the generator of the weights.
        first: column of the first weight; the others follow it, and the factor follows them.
        count: number of chains.
        alpha: parameter of the Dirichlet and the Beta distribution.
        blended: whether the weights are those of one blend for each chain.
    """

    drawn: int
    first: int
    count: int
    alpha: float
    blended: bool


@dataclass(frozen=True)
class SumWeights:
    """One of the `count` weights of the chains of torchvision's AugMix, or that of the image after them.

    Attributes:
        drawn, first, count: as in `ChainWeights`.
        alpha: parameter of both Dirichlet distributions.
    """

    drawn: int
    first: int
    count: int
    alpha: float


#: A column of the draws array: drawn, or computed from columns that are drawn.
AnyColumn = ChainWeights | Column | GaussianWeight | Normal | PolicyNumber | SumWeights | WarpNumber


def shift_column(column: AnyColumn, by: int) -> AnyColumn:
    """Returns a column of a recipe whose columns begin `by` places later."""
    if isinstance(column, (Column, Normal)):
        return column
    if isinstance(column, PolicyNumber):
        magnitude = replace(column.magnitude, draw=column.magnitude.draw + by)
        among = None if column.among is None else (column.among[0] + by, *column.among[1:])
        return replace(column, magnitude=magnitude, way=column.way + by, among=among)
    if isinstance(column, (ChainWeights, SumWeights, WarpNumber)):
        return replace(column, drawn=column.drawn + by, first=column.first + by)
    return replace(column, sigma=column.sigma + by, first=column.first + by)
