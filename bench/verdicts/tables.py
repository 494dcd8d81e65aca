"""What was judged, as tables: how often the verdicts were right, and what the changes gained."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from bench.verdicts.situations import SITUATIONS
from headrace._loading.bottleneck.verdict import MANY


def summary(found: list[dict[str, Any]]) -> str:
    """The table, and the counts of right, wrong and confidently wrong verdicts."""
    lines = [f"{'situation':<24}{'right':>8}  said instead; change; expected -> measured gain"]
    right = sure_and_wrong = 0
    for name, situation in SITUATIONS.items():
        mine = [one for one in found if one["situation"] == name]
        if not mine:
            continue
        good = [one for one in mine if one["bottleneck"] in situation.bottleneck]
        right += len(good)
        bad = [one for one in mine if one not in good]
        sure_and_wrong += sum(one["certainty"] == "sure" for one in bad)
        said = Counter(f"{one['bottleneck']} ({one['certainty']})" for one in bad)
        changed = Counter(one["change"] or "none" for one in mine)
        gains = [f"{one['made']}: {one['expected']:.2f} -> {one['measured']:.2f}" for one in mine if "made" in one]
        rest = "; ".join((str(dict(said)) if said else "-", str(dict(changed)), ", ".join(gains)))
        lines.append(f"{name:<24}{len(good):>4}/{len(mine):<3}  {rest}")
    # Other programs may be there in any situation.
    right_advice = {name: (*(situation.advice or ("",)), "free cores") for name, situation in SITUATIONS.items()}
    wrong_change = [one for one in found if one["change"] not in right_advice[one["situation"]]]
    close = [one for one in found if "made" in one and _close(one)]
    asked = [one for one in found if "made" in one]
    lines.append(f"right: {right} of {len(found)}; sure and wrong: {sure_and_wrong}; other advice: {len(wrong_change)}")
    lines.append(f"gains within 20%: {len(close)} of {len(asked)}")
    return "\n".join(lines)


def _close(one: dict[str, Any]) -> bool:
    """Whether a gain came as expected, within 20%; the verdict tells those of ten and more as "more than 10x"."""
    expected, measured = (min(one[key], MANY) for key in ("expected", "measured"))
    return bool(abs(expected / measured - 1) <= 0.2)


def before_and_after(found: list[dict[str, Any]]) -> str:
    """The changes that were made, one row a situation, as Markdown: medians over the rounds."""
    lines = ["| verdict | situation | before | change | after | expected | measured |", "|---|---|---|---|---|---|---|"]
    for name in SITUATIONS:
        mine = [one for one in found if one["situation"] == name and "made" in one]
        if not mine:
            continue
        verdict = Counter(one["bottleneck"] for one in mine).most_common(1)[0][0]
        made = Counter(one["made"] for one in mine).most_common(1)[0][0]
        same = [one for one in mine if one["made"] == made]
        before, after = (median(ms for one in same for ms in one[key]) for key in ("before_ms", "after_ms"))
        gains = [median(one[key] for one in same) for key in ("expected", "measured")]
        told = f"{gains[0]:.2f}x" if gains[0] < MANY else f"more than {MANY}x"
        advice = Counter(one["advice"] or made for one in same).most_common(1)[0][0]
        got = f"{gains[1]:.2f}x" if gains[1] < MANY else f"{gains[1]:.0f}x"
        cells = [f"`{verdict}`", name, f"{before:.3g} ms", advice, f"{after:.3g} ms", told, got]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
