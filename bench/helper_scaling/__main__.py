"""A simulation: what helpers would add to a host with eight GPUs. Nothing here is measured but the costs of a sample.

    python -m bench.helper_scaling [--out FILE]

A discrete-event simulation of how `SampleQueue` and `HelperLane` share out samples: native threads take from the front
of the batch that is due; each connection of a helper takes up to 32 from the back of the batch that is due last, and
leaves as many as the threads here make until an answer arrives. Cores are shared without preemption, a connection's
thread before native ones; a link sends one message after another. Not simulated: Python's lock (a loader's process has
taken in 7,300 samples a second, measured), memory bandwidth, hardware threads, losses, several switches.

First the simulation repeats what `bench.helpers` measured (results/helpers.json); the deviation is printed. Then the
hosts: eight training processes with a loader and a GPU of 4,000 images a second each, batches of 256, a core for each
process itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from bench.helper_scaling.world import ANSWER, FILE, HELPER_S, LOCAL_S, Setting, World

RESULTS = Path(__file__).resolve().parents[1] / "results"
#: What the proxy that makes 100 Mbit/s costs there, in the process that trains: fitted to the point "strong, 0".
PASSING_S = 0.00055
GPUS, GPU_RATE, BATCH, PREFETCH = 8, 4000.0, 256, 2
#: What a sample costs in times of LOCAL_S, and the cores of the host.
HOSTS: tuple[tuple[float, int], ...] = ((1.0, 16), (1.0, 64), (1.0, 96), (4.0, 64), (8.0, 64), (8.0, 96))


def epoch_s(setting: Setting) -> tuple[float, float]:
    """Seconds of an epoch as `bench.helpers` takes them, from its second batch on; and the helper's share."""
    world = World(setting)
    times = world.loaders[0].times
    return times[-1] - times[1], world.helped / world.stored


def check() -> dict[str, Any]:
    """Repeats bench.helpers: what is simulated, what was measured, and the ratio of both."""
    measured = json.loads((RESULTS / "helpers.json").read_text())
    found: dict[str, Any] = {}
    alone = epoch_s(Setting(helpers=0))[0]
    for name, sends in (("files are sent", True), ("the helper reads them", False)):
        seconds, share = epoch_s(Setting(sends=sends))
        truth = measured["together"][name]
        found[name] = {"simulated": alone / seconds, "measured": truth["ratio"]}
        found[name] |= {"share": share, "measured_share": truth["share"]}
    for name, truth in measured["split"].items():
        slow, weak = name.startswith("100"), name.endswith("weak helper")
        setting = Setting(rate=12.5e6 if slow else 12.5e9, own=slow, pauses=3.0 * weak, passing_s=PASSING_S * slow)
        for keep, seconds in truth["seconds"].items():
            made = epoch_s(replace(setting, keep=None if keep == "found" else int(keep)))[0]
            found[f"{name}, {keep}"] = {"simulated": made, "measured": seconds}
    for one in found.values():
        one["to_measured"] = one["simulated"] / one["measured"]
    return found


def deviations(checked: dict[str, Any]) -> dict[str, float]:
    """The largest deviation from what was measured, of the ratios and of the points of each situation."""
    largest: dict[str, float] = {}
    for name, one in checked.items():
        group = name.rpartition(", ")[0] or name
        largest[group] = max(largest.get(group, 0.0), abs(one["to_measured"] - 1))
    return {name: round(value, 3) for name, value in largest.items()}


def host(cores: int, helpers: int, gbits: int, heavy: float) -> dict[str, Any]:
    """What a host with eight GPUs gets where files are sent: images a second, and what ends first.

    Args:
        cores: of the host.
        helpers: of 16 cores each.
        gbits: a second, of each host's network.
        heavy: seconds of a core for a sample, there and here, in times of the measured ones.
    """
    threads = max(1, cores // GPUS - 1)
    setting = Setting(
        loaders=GPUS, cores=cores - GPUS, threads=threads, helpers=helpers, helper_cores=16,
        local_s=heavy * LOCAL_S, helper_s=HELPER_S + (heavy - 1) * LOCAL_S, sends=True, rate=gbits / 8 * 1e9,
        batch=BATCH, prefetch=PREFETCH, period_s=BATCH / GPU_RATE, batches=40,
    )  # fmt: skip
    world, size = World(setting), BATCH
    skipped = setting.batches // 4
    rates = [size * (len(one.times) - 1 - skipped) / (one.times[-1] - one.times[skipped]) for one in world.loaders]
    seconds, delivered = world.clock.now, sum(rates)
    used = {
        "the host's cores": world.cores.busy / seconds / world.cores.number,
        "the network to the host": world.inward.busy / seconds,
        "the network to the helpers": world.out.busy / seconds,
        "the helpers' cores": statistics.mean([one.cores.busy / seconds / 16 for one in world.helpers] or [0.0]),
    }
    full = [name for name, part in used.items() if part >= 0.9]
    limit = " and ".join(full) or "requests in flight"
    if delivered > 0.99 * GPUS * GPU_RATE:
        limit = "the GPUs"
    return {
        "cores": cores, "helpers": helpers, "gbits": gbits, "heavy": heavy,
        "images_a_second": round(delivered), "from_helpers": round(world.helped / world.stored, 3),
        "cores_used": round(world.cores.busy / seconds, 1),
        "gbits_in": round(8e-9 * ANSWER * world.helped / seconds, 1),
        "gbits_out": round(8e-9 * FILE * world.helped / seconds, 1),
        "used": {name: round(value, 2) for name, value in used.items()}, "limit": limit,
    }  # fmt: skip


def main() -> None:
    """Checks, simulates, prints and writes."""
    parser = argparse.ArgumentParser(prog="python -m bench.helper_scaling", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    checked = check()
    for name, one in checked.items():
        print(f"{name:45} simulated {one['simulated']:.3f}, measured {one['measured']:.3f}: {one['to_measured']:.2f}")
    print(json.dumps(deviations(checked), indent=1))
    rows = []
    for (heavy, cores), helpers, gbits in product(HOSTS, (0, 2, 4, 8), (25, 100)):
        if helpers or gbits == 25:
            rows.append(host(cores, helpers, gbits, heavy))
            print(json.dumps(rows[-1]), flush=True)
    if args.out:
        found = {"simulation": True, "deviations": deviations(checked), "check": checked, "hosts": rows}
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
