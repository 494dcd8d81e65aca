"""Judges built situations, each in a process of its own, and compares expected gains with measured ones.

    python -m bench.verdicts [--rounds 5] [--seconds 2] [--only decode quota ...] [--out NAME.json] [--markdown NAME.md]

Prints how often each verdict was right, what was said instead, how sure it was, and, where the advised change (or one
that is named beside it) can be made here, the expected and the measured gain: before and after in turn, the median of
`--turns` pairs. `--markdown` writes these as the table of docs/waiting.md. Each process has a control group of its own
where one can be made, so that its share of a busy machine does not depend on its number of threads.
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
from collections.abc import Collection
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import describe
from bench.verdicts.control_groups import limited
from bench.verdicts.slow_reads import library, set_delay
from bench.verdicts.tables import before_and_after, summary
from headrace._loading.bottleneck.changes import Change
from headrace._loading.bottleneck.verdict import Verdict

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


def advised(verdict: Verdict, possible: Collection[str]) -> Change | None:
    """Returns the change that can be made here: the advised one, or else the next best of those that were named."""
    known = [*([verdict.change] if verdict.change is not None else []), *verdict.others]
    known.append(Change("perfect loader", "", verdict.ceiling))
    return next((one for one in known if one.name in possible), None)


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
            found |= {"text": str(verdict), "change": verdict.change.name if verdict.change else ""}
            made = advised(verdict, situation.changed)
            if made is not None and turns:
                after, cpus = [], os.sched_getaffinity(0)
                for _ in range(turns):
                    set_delay(situation.slow_reads)
                    changed = situation.changed[made.name](Path(folder), made.advice)
                    after.append(ms_a_batch(changed, situation.step(), seconds))
                    os.sched_setaffinity(0, cpus)
                    set_delay(situation.slow_reads)
                    before.append(ms_a_batch(loader, situation.step(), seconds))
                found |= {"made": made.name, "advice": made.advice, "expected": made.gain}
                found |= {"before_ms": before[1:], "after_ms": after}
                found |= {"measured": median(one / other for one, other in zip(before[1:], after, strict=True))}
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
    with limited(quota) as group:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=2, help="pairs before and after (default: 2; 0: none)")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path)
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
        if options.markdown:
            options.markdown.write_text(before_and_after(found))
        if options.out:
            options.out.write_text(json.dumps({"machine": describe(), "found": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
