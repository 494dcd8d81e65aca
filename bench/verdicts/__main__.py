"""Judges built situations, each in a process of its own, and compares expected gains with measured ones.

    python -m bench.verdicts [--rounds 5] [--seconds 2] [--only decode quota ...] [--out NAME.json]

Prints how often each verdict was right, what was said instead, how sure it was, and, where the advised change can be
made here, the expected and the measured gain (before and after in turn, the median of `--turns` pairs).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import describe
from bench.verdicts.control_groups import limited
from bench.verdicts.slow_reads import library, set_delay

_WARM_UP = 3


def ms_a_batch(loader: Any, step: Any, seconds: float) -> float:
    """Runs the loop for some seconds; the first batches are not timed."""
    begin = timed = 0.0
    batches = 0
    for number, _ in enumerate(loader):
        step()
        now = time.perf_counter()
        if number == _WARM_UP:
            begin = now
        elif number > _WARM_UP:
            batches, timed = batches + 1, now - begin
            if timed > seconds and batches > 20:
                break
    return 1e3 * timed / max(1, batches)


def one(name: str, seconds: float, turns: int) -> dict[str, Any]:
    """Judges a situation in this process."""
    import torch

    from bench.verdicts.situations import SITUATIONS

    torch.set_num_threads(1)
    situation = SITUATIONS[name]
    if situation.pinned:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: situation.pinned])
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(situation.burners)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            set_delay(situation.slow_reads)
            loader = situation.build(Path(folder))
            before = [ms_a_batch(loader, situation.step(), seconds)]
            verdict = loader.stats().verdict
            found = {"situation": name, "bottleneck": verdict.bottleneck, "certainty": verdict.certainty}
            found |= {"text": str(verdict), "expected": None, "measured": None}
            change = verdict.change
            found |= {"change": change.name if change else ""}
            if change is not None and change.name in situation.changed:
                after = []
                for _ in range(turns):
                    set_delay(situation.slow_reads)
                    changed = situation.changed[change.name](Path(folder), change.advice)
                    after.append(ms_a_batch(changed, situation.step(), seconds))
                    set_delay(situation.slow_reads)
                    before.append(ms_a_batch(loader, situation.step(), seconds))
                found |= {"expected": change.gain, "measured": median(before) / median(after)}
            return found
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def in_a_process(name: str, quota: float, options: argparse.Namespace) -> dict[str, Any] | None:
    """Judges a situation in a process of its own; None where it cannot be built here."""
    command = [sys.executable, "-m", "bench.verdicts", "--one", name, "--seconds", str(options.seconds)]
    command += ["--turns", str(options.turns)]
    environment = os.environ | {"LD_PRELOAD": str(library()), "PYTHONWARNINGS": "ignore"}
    with limited(quota) if quota else nullcontext() as group:
        if quota and group is None:
            return None

        def join() -> None:
            if group is not None:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            command, env=environment, preexec_fn=join, capture_output=True, text=True, timeout=180, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def summary(found: list[dict[str, Any]]) -> str:
    """The table, and the counts of right, wrong and confidently wrong verdicts."""
    from bench.verdicts.situations import SITUATIONS

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
        gains = [f"{one['expected']:.2f} -> {one['measured']:.2f}" for one in mine if one["expected"]]
        rest = "; ".join((str(dict(said)) if said else "-", str(dict(changed)), ", ".join(gains)))
        lines.append(f"{name:<24}{len(good):>4}/{len(mine):<3}  {rest}")
    # Other programs may be there in any situation.
    right_advice = {name: (*(situation.advice or ("",)), "free cores") for name, situation in SITUATIONS.items()}
    wrong_change = [one for one in found if one["change"] not in right_advice[one["situation"]]]
    close = [one for one in found if one["expected"] and abs(one["expected"] / one["measured"] - 1) <= 0.2]
    asked = [one for one in found if one["expected"]]
    lines.append(f"right: {right} of {len(found)}; sure and wrong: {sure_and_wrong}; other advice: {len(wrong_change)}")
    lines.append(f"gains within 20%: {len(close)} of {len(asked)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.seconds, options.turns)))
        return
    from bench.verdicts.situations import SITUATIONS

    found = []
    try:
        for number in range(options.rounds):
            names = list(options.only or SITUATIONS)
            random.Random(number).shuffle(names)
            for name in names:
                judged = in_a_process(name, SITUATIONS[name].quota, options)
                if judged is None:
                    print(f"{name}: not built: control groups cannot be made here\n", file=sys.stderr)
                    continue
                found.append(judged)
                print(f"{name}: {judged['text']}\n", file=sys.stderr, flush=True)
    finally:  # what there is, also after an interrupt
        print(summary(found))
        if options.out:
            options.out.write_text(json.dumps({"machine": describe(), "found": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
