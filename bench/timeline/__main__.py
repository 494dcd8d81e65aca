"""Records one epoch of a loader and shows where its time goes: a trace, shares of the time, and a picture.

    python -m bench.timeline --out FOLDER [--device cpu|emulated|cuda] [--decoder auto] [--images DIR]
                             [--batch 64] [--batches 40] [--threads 2]

writes FOLDER/trace.json.gz (for https://ui.perfetto.dev; with a GPU it includes torch.profiler's records),
timeline.json (shares) and, if matplotlib is installed, timeline.png (five batches). The consumer does nothing with the
batches, so its time is waiting.
"""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import PIL
import torch

import headrace
from bench import machine
from bench.contenders._common import MEAN, SIZE, STD
from bench.datasets import PHOTOS
from bench.gpu.images import files
from bench.timeline.shares import shares
from headrace import transforms as T
from headrace._reports.loader.chrome_trace import read_trace

WARM_BATCHES = 4  # so that threads, memory and a GPU's libraries exist when the recording begins


def make_loader(options: argparse.Namespace) -> headrace.DataLoader:
    """The usual training recipe over as many files as the epoch needs, repeated if there are too few."""
    paths = files(options.images, options.batch * options.batches)
    recipe = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    dataset = headrace.ImageFiles(paths, [0] * len(paths), recipe)
    return headrace.DataLoader(
        dataset, options.batch, shuffle=True, num_workers=options.threads, seed=0, persistent_workers=True,
        device=options.device, decoder=options.decoder,
    )  # fmt: skip


def record(loader: headrace.DataLoader, out: Path, *, on_gpu: bool) -> headrace.profile:
    """Records one epoch, and writes its trace to `out`."""
    torch_trace = out.with_name("torch.json")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    both = torch.profiler.profile(activities=activities) if on_gpu else nullcontext()
    with both as theirs, headrace.profile() as prof:
        for _ in loader:
            pass
        if on_gpu:
            torch.cuda.synchronize()
    if theirs is not None:
        theirs.export_chrome_trace(str(torch_trace))
    prof.export_chrome_trace(out, torch_trace=torch_trace if on_gpu else None)
    torch_trace.unlink(missing_ok=True)
    return prof


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.timeline", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "emulated", "cuda"), default="cpu")
    parser.add_argument("--decoder", choices=("auto", "cpu", "hardware", "cuda"), default="auto")
    parser.add_argument("--images", type=Path, default=PHOTOS, help="a folder of JPEG files")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    loader = make_loader(options)
    for _ in islice(loader, WARM_BATCHES):
        pass
    loader.set_epoch(0)
    prof = record(loader, options.out / "trace.json.gz", on_gpu=options.device == "cuda")
    print(prof)
    trace = read_trace(options.out / "trace.json.gz")
    result: dict[str, Any] = {
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
        "machine": machine.describe(),
        "gpu": torch.cuda.get_device_name() if options.device == "cuda" else None,
        "versions": {"headrace": headrace.__version__, "torch": torch.__version__, "Pillow": PIL.__version__},
        "loader": str(loader.explain()).splitlines(),
        "images_per_s_while_recording": round(options.batch * options.batches / prof.recorded_s, 1),
        "shares": shares(trace),
        "stages": [vars(one) for one in prof.summary(per_thread=True)],
        "dropped_spans": prof.dropped,
    }
    (options.out / "timeline.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["shares"], indent=1))
    title = f"device={options.device}, decoder={options.decoder}: batches of {options.batch}, {options.threads} threads"
    try:
        from bench.timeline.plot import draw  # imported here: trace and shares need no matplotlib
    except ImportError as missing:
        print(f"no timeline.png: {missing}")
    else:
        draw(trace, options.out / "timeline.png", title)


if __name__ == "__main__":
    main()
