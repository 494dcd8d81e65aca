"""Times a ResNet-50's training step (bfloat16, channels_last) with each loader in turns, and with a resident batch.

    python -m bench.gpu.training [--images DIR] [--seconds S] [--rounds N] [--out FILE.json]

`starved`: the share of the time in which the step's stream waited for the next batch (or ran the loader's own work),
measured with CUDA events around every `next()`. `of_resident`: images per second, relative to the step on a batch that
stays on the GPU; this includes the cost of the loader's kernels and copies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from bench.contenders._common import SIZE
from bench.gpu.contenders import CONTENDERS, Batches, Work, first_batch
from bench.gpu.loaders import finish
from bench.gpu.tuning import VARIANTS_BY_NAME
from bench.gpu.turns import by_name, finish_with, options_of, spread, take_turns, work_of

RESIDENT = "one batch that stays on the GPU"
WARM_UP_STEPS = 5


class Step:
    """One training step of a network on random labels."""

    def __init__(self, network: torch.nn.Module, work: Work) -> None:
        self._device = torch.device("cuda" if work.device == "cuda" else "cpu")
        self._network = network.to(self._device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=0.01, momentum=0.9)
        self._labels = torch.randint(0, 1000, (work.batch,), device=self._device)

    def __call__(self, batch: torch.Tensor) -> None:
        with torch.autocast(self._device.type, torch.bfloat16):
            logits = self._network(batch.contiguous(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(logits, self._labels)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()


def network(name: str) -> torch.nn.Module:
    """torchvision's ResNet-50, or a few layers to try this script without a GPU."""
    if name == "tiny":
        layers = [torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(8, 1000))
    from torchvision.models import resnet50

    made: torch.nn.Module = resnet50(weights=None)
    return made


def resident(work: Work) -> Batches:
    """The same batch without end."""
    batch = torch.randn(work.batch, 3, SIZE, SIZE, device="cuda" if work.device == "cuda" else "cpu")
    while True:
        yield batch


class _Stopwatch:
    """Measures time on the current stream between marks, by events of a GPU or by the clock."""

    def __init__(self, work: Work) -> None:
        self._cuda = work.device == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        if self._cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(time.perf_counter())

    def between(self) -> float:
        """The seconds inside next(): the marks are mark, next(), mark, step, mark, next(), ..."""
        pairs = zip(self._marks[::2], self._marks[1::2], strict=True)
        return sum(a.elapsed_time(b) / 1e3 if self._cuda else b - a for a, b in pairs)


def measure(batches: Batches, step: Step, work: Work, seconds: float) -> dict[str, float]:
    """Images per second, and the share of the time in which the step's stream waited for batches."""
    for _ in range(WARM_UP_STEPS):
        step(next(batches))
    finish(work)
    watch, count, begin = _Stopwatch(work), 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        watch.mark()
        batch = next(batches)
        watch.mark()
        step(batch)
        count += len(batch)
        del batch
    finish(work)
    took = time.perf_counter() - begin
    return {"images_per_s": count / took, "starved": watch.between() / took}


def run(work: Work, options: argparse.Namespace) -> dict[str, Any]:
    """Measures the step with each source of batches in turns."""
    contenders = VARIANTS_BY_NAME if options.tuning else CONTENDERS
    step = Step(network(options.model), work)

    def begun(make: Callable[[Work], Batches]) -> Batches:
        batches = make(work)
        first_batch(batches, work)
        return batches

    def fed(batches: Batches, so_far: dict[str, Any]) -> dict[str, float]:
        row = measure(batches, step, work, options.seconds)
        return row | {"of_resident": row["images_per_s"] / so_far.get(RESIDENT, row)["images_per_s"]}

    makers = {name: partial(begun, make) for name, make in ({RESIDENT: resident} | contenders).items()}
    turns = take_turns(makers, fed, options, always=[RESIDENT])
    return {"model": options.model, "batch": work.batch, "workers": work.workers} | turns


def table(result: dict[str, Any]) -> str:
    """The figures as a markdown table."""
    lines = [f"{result['model']}, batches of {result['batch']}, {result['workers']} threads", ""]
    lines += ["| fed by | images/s | of the resident batch | starved |", "|---|---|---|---|"]
    for name, rows in by_name(result).items():
        rate, share, starved = (
            spread([row[key] for row in rows]) for key in ("images_per_s", "of_resident", "starved")
        )
        said = f"{rate['median']:,.0f} ({rate['least']:,.0f} to {rate['greatest']:,.0f})"
        idle = f"{starved['median']:.1%} (most: {starved['greatest']:.1%})"
        lines.append(f"| {name} | {said} | {share['median']:.3f} | {idle} |")
    lines += [f"| {name} | - ({why.splitlines()[0][:90]}) | | |" for name, why in result["failed"].items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.training", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet50", choices=("resnet50", "tiny"))
    parser.add_argument("--tuning", action="store_true", help="feed it by the variants of bench.gpu.tuning")
    options = options_of(parser, seconds=4.0)
    torch.backends.cudnn.benchmark = True
    result = run(work_of(options), options)
    finish_with(result, table(result), options)


if __name__ == "__main__":
    main()
