"""The line of `explain` for a step."""

from __future__ import annotations

from collections.abc import Sequence

import headrace._recipe.steps.steps as S


def described(step: S.Step) -> str:
    """Returns the step's repr, or words for a random choice of steps."""
    if isinstance(step, S.When):
        return f"with p={step.p:g} [{_all(step.steps)}]"
    if isinstance(step, S.OneOf):
        shares = [high - low for low, high in zip((0.0, *step.bounds), step.bounds, strict=False)]
        ways = [f"p={share:.4g}: {_all(branch)}" for share, branch in zip(shares, step.branches, strict=True)]
        return f"one of [{' | '.join(ways)}]"
    if isinstance(step, S.Shuffled):
        return f"in random order [{' | '.join(_all(branch) for branch in step.branches)}]"
    if isinstance(step, S.MixChains):
        how = "blends" if step.blended else "sums"
        return f"{how} of {len(step.chains)} chains [{' | '.join(_all(chain) for chain in step.chains)}]"
    if isinstance(step, S.SumChains):
        return f"weighted sum of the image and {len(step.chains)} chains [{' | '.join(map(_all, step.chains))}]"
    return str(step)


def _all(steps: Sequence[S.Step]) -> str:
    return ", ".join(described(step) for step in steps) or "nothing"
