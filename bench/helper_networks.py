"""Epochs with helpers over bad networks: are they those of the loader alone, and how long is no batch there?

    python -m bench.helper_networks [--images FOLDER] [--out FILE] [--only CASE ...]

Needs root, `ip` and `tc`, and `nft` for lost packets and resets: each helper is a `headrace serve` in a network
namespace of its own. Training: RandomResizedCrop(224), flip, ToTensor, Normalize, shuffled, one thread here and one in
each helper, whose share is what the loader gives it. Before all cases, two batches of the loader alone are compared
with torchvision on Pillow; then each sample of each epoch with that of the loader alone, by SHA-256, whose time is not
in the waits. After an event, epochs go on until each helper makes samples again, up to 20 s.
A helper whose answers were late may not be asked any more (`all_work_again`): in a network that is too slow, or where
other helpers leave nothing to do. Fails where a sample is lost or wrong, a wait too long, or no helper works again.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python" / "helpers"))

from far_host import FarHost, why_none

import headrace
from bench.helpers import dataset_of
from bench.machine import describe

BATCH, SAMPLES = 32, 1280  # of an epoch, at least
EPOCHS = 3  # of a case, the event is in the second
AFTER_S = 20.0  # how long a helper that works again may not be asked
DOWN_S = 7.0  # how long a host is away: longer than a loader waits for an answer
MOST_WAIT_S = 10.0
Event = Callable[[Sequence[FarHost]], None]


@dataclass(frozen=True)
class Case:
    """A network, and what happens in the middle of the second epoch.

    Attributes:
        helpers: how many.
        delay_s: of each packet in each direction.
        set_up: done to each host before its helper starts.
        program: what is needed for that.
        event, repair: what happens to the hosts, and is undone after DOWN_S.
    """

    helpers: int = 2
    delay_s: float = 0.0
    set_up: Callable[[FarHost], None] = lambda host: None
    program: str = "tc"
    event: Event = lambda hosts: None
    repair: Event | None = None


def _cut(hosts: Sequence[FarHost]) -> None:
    hosts[0].cut()


def _mend(hosts: Sequence[FarHost]) -> None:
    hosts[0].mend()


def _cut_all(hosts: Sequence[FarHost]) -> None:
    for one in hosts:
        one.cut()


def _mend_all(hosts: Sequence[FarHost]) -> None:
    for one in hosts:
        one.mend()


def _stop(hosts: Sequence[FarHost]) -> None:
    hosts[0].send_signal(signal.SIGSTOP)


def _continue(hosts: Sequence[FarHost]) -> None:
    hosts[0].send_signal(signal.SIGCONT)


def _kill(hosts: Sequence[FarHost]) -> None:
    hosts[-1].send_signal(signal.SIGKILL)


def _start(hosts: Sequence[FarHost]) -> None:
    hosts[-1].start()


def _stop_and_kill(hosts: Sequence[FarHost]) -> None:
    _stop(hosts)
    _kill(hosts)


def _continue_and_start(hosts: Sequence[FarHost]) -> None:
    _continue(hosts)
    _start(hosts)


CASES: dict[str, Case] = {
    "plain": Case(),
    "30 ms in each direction": Case(delay_s=0.03),
    "100 Mbit/s": Case(set_up=lambda host: host.limit("100mbit")),
    "5% of the packets lost": Case(set_up=lambda host: host.drop(0.05), program="nft"),
    "resets": Case(set_up=lambda host: host.reset(0.002), program="nft"),
    "one link is down for 7 s": Case(event=_cut, repair=_mend),
    "all links are down for 7 s": Case(event=_cut_all, repair=_mend_all),
    **{f"stopped for 7 s, of {n}": Case(n, event=_stop, repair=_continue) for n in (1, 3)},
    **{f"killed, started after 7 s, of {n}": Case(n, event=_kill, repair=_start) for n in (1, 3)},
    "one stopped and one killed, of 5": Case(5, event=_stop_and_kill, repair=_continue_and_start),
}


@dataclass
class Outcome:
    """What the epochs of a case have shown; `shares`: what the helpers made, in each epoch."""

    helpers: int
    epochs: int = 0
    samples: int = 0
    lost: int = 0
    wrong: int = 0
    failures: int = 0
    longest_wait_s: float = 0.0
    shares: list[float] = field(default_factory=list)
    all_work_again: bool = False

    def faults(self, case: Case) -> list[str]:
        """What must not be."""
        found = {
            "samples are lost or wrong": self.lost or self.wrong,
            "a wait is too long": self.longest_wait_s > MOST_WAIT_S,
            "helpers have made nothing": not any(self.shares),
            "no helper works again": case.repair is not None and not self.shares[-1],
        }
        return [text for text, is_so in found.items() if is_so]


def hashes(labels: torch.Tensor, images: torch.Tensor) -> list[tuple[int, bytes]]:
    """The label of each sample, and the hash of its image."""
    return [
        (label, hashlib.sha256(image.numpy()).digest()) for label, image in zip(labels.tolist(), images, strict=True)
    ]


def loader_of(dataset: Any, helpers: Sequence[str] = ()) -> Any:
    options: dict[str, Any] = {"shuffle": True, "num_workers": 1, "prefetch_factor": 16, "persistent_workers": True}
    return headrace.DataLoader(dataset, BATCH, seed=0, helpers=list(helpers) or None, **options)


class Truth:
    """The epochs of the loader alone."""

    def __init__(self, dataset: Any) -> None:
        self._loader = loader_of(dataset)
        self._epochs: list[list[list[tuple[int, bytes]]]] = []
        self.verified = str(self._loader.verify(n=2))

    def epoch(self, number: int) -> list[list[tuple[int, bytes]]]:
        """The samples of an epoch, by batches."""
        while len(self._epochs) <= number:
            self._loader.set_epoch(len(self._epochs))
            self._epochs.append([hashes(labels, images) for images, labels in self._loader])
        return self._epochs[number]

    def close(self) -> None:
        self._loader.close()


def run_epoch(loader: Any, truth: list[list[tuple[int, bytes]]], event: Callable[[], None], seen: Outcome) -> None:
    """Compares an epoch, in whose middle something happens."""
    batches, expected = iter(loader), iter(truth)
    for number in range(len(truth) + 1):
        if number == len(truth) // 3:
            event()
        begin = time.perf_counter()
        batch = next(batches, None)
        seen.longest_wait_s = max(seen.longest_wait_s, time.perf_counter() - begin)
        found = hashes(batch[1], batch[0]) if batch is not None else []
        wanted = next(expected, [])
        if wanted:
            seen.lost += len(wanted) - len(found)
        seen.wrong += sum(one != other for one, other in zip(found, wanted, strict=False)) if wanted else len(found)
        seen.samples += len(found)
    work = loader.stats().helpers.values()
    seen.epochs += 1
    seen.shares.append(round(sum(one.samples for one in work) / sum(map(len, truth)), 3))
    seen.failures += sum(one.failures for one in work)
    seen.all_work_again = all(one.samples for one in work)


def run_case(case: Case, dataset: Any, truth: Truth) -> Outcome:
    """The epochs of one case."""
    seen, repairs = Outcome(case.helpers), threading.Event()
    repaired_at: list[float] = []
    with ExitStack() as stack:
        hosts = []
        for number in range(case.helpers):
            hosts.append(FarHost(number, case.delay_s))
            stack.callback(hosts[-1].close)
            case.set_up(hosts[-1])
            hosts[-1].start()
        loader = loader_of(dataset, [one.address for one in hosts])
        stack.callback(loader.close)

        def repair() -> None:
            if case.repair is not None:
                case.repair(hosts)
            repaired_at.append(time.monotonic())
            repairs.set()

        timer = threading.Timer(DOWN_S, repair)

        def happen() -> None:
            case.event(hosts)
            timer.start()

        def settle() -> None:
            timer.cancel()
            if timer.is_alive():
                timer.join()

        stack.callback(settle)
        for number in itertools.count():
            loader.set_epoch(number)
            run_epoch(loader, truth.epoch(number), happen if number == 1 else lambda: None, seen)
            if number + 1 < EPOCHS or (case.repair is not None and not repairs.is_set()):
                continue
            if case.repair is None or seen.all_work_again or time.monotonic() > repaired_at[0] + AFTER_S:
                break
    return seen


def main() -> None:
    """Runs the cases, prints and writes what they show; fails where a sample is lost or wrong, or a wait too long."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", default=str(Path(headrace.__file__).parent / "_cli" / "demo" / "photos"))
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if why := why_none():
        sys.exit(f"bench.helper_networks: {why}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that namespaces and helpers end, too
    torch.set_num_threads(1)
    once: Any = dataset_of(args.images)
    paths = list(once.paths) * -(-SAMPLES // len(once))
    dataset = headrace.ImageFiles(paths, list(range(len(paths))), once.transform)  # each sample has a label of its own
    truth = Truth(dataset)
    found: dict[str, Any] = {"machine": describe(), "images": Path(args.images).name, "samples": len(dataset)}
    found |= {"verified": truth.verified, "cases": {}}
    print(truth.verified)
    faults = []
    for name in args.only:
        if shutil.which(CASES[name].program) is None:
            print(f"{name}: left out, since the program {CASES[name].program} is not installed")
            continue
        seen = run_case(CASES[name], dataset, truth)
        found["cases"][name] = vars(seen)
        print(f"{name}: {json.dumps(vars(seen))}", flush=True)
        faults += [f"{name}: {text}" for text in seen.faults(CASES[name])]
    truth.close()
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
