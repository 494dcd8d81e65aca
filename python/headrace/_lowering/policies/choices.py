"""Choices among branches with equal shares."""

from __future__ import annotations

from collections.abc import Sequence

import headrace._recipe.steps.steps as S
from headrace._lowering.policies.operations import Steps


def any_of(branches: Sequence[Steps], draw: int) -> S.OneOf:
    """Returns a choice of branches with equal shares, by column `draw`."""
    count = len(branches)
    return S.OneOf(tuple(branches), tuple((i + 1) / count for i in range(count)), draw)


def any_way(ways: Sequence[Steps], draw: int) -> Steps:
    """Returns the only way, or a choice of the ways."""
    return ways[0] if len(ways) == 1 else (any_of(ways, draw),)
