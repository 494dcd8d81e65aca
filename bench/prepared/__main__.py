"""Times a loader bare, and as trainers iterate over it: is any speed lost in what they make of it?

    python -m bench.prepared [FOLDER] [--routes native deferred] [--ways accelerate ...] [--batches 60] [--rounds 5]

Each way is timed in turn with the bare loader (bare A bare B ...), in one process on the same cores; no network is
trained, so the loader alone decides. A ratio is the way's images/s over those of the bare loader beside it; the bar is
0.95. FOLDER is an ImageFolder; the default is a folder of headrace's photographs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from PIL import Image

import headrace
from bench.machine import describe, options_of
from headrace import transforms as T
from headrace._cli.demo.photo_folder import make_photo_folder

ROOT = Path(__file__).resolve().parents[2]
BAR = 0.95
FIRST = 6  # batches that are not timed
RECIPE = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])


class Own(torch.utils.data.Dataset[Any]):
    """A dataset of the user's own, whose images are deferred."""

    def __init__(self, paths: list[str], count: int) -> None:
        self.paths, self.count = paths, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return RECIPE(Image.open(self.paths[index % len(self.paths)]).convert("RGB")), index % 10


def dataset_of(route: str, paths: list[str], count: int) -> Any:
    """A dataset of `count` samples that has this route."""
    if route == "deferred":
        return Own(paths, count)
    return headrace.ImageFiles([paths[i % len(paths)] for i in range(count)], [i % 10 for i in range(count)], RECIPE)


# ---- ways: each takes a function that makes a loader, and returns the loader that is used and its batches ------------

Make = Callable[..., Any]


def bare(make: Make) -> tuple[Any, Iterator[Any]]:
    """The loader itself."""
    loader = make()
    return loader, iter(loader)


def accelerate(make: Make) -> tuple[Any, Iterator[Any]]:
    """``accelerator.prepare(loader)``."""
    from accelerate import Accelerator

    loader = Accelerator(cpu=True).prepare(make())
    return loader, iter(loader)


def transformers(make: Make) -> tuple[Any, Iterator[Any]]:
    """What a Trainer trains with."""
    from transformers import Trainer, TrainingArguments

    class Timed(Trainer):
        def get_train_dataloader(self) -> Any:
            return self.accelerator.prepare(make())

    folder = tempfile.mkdtemp()
    arguments = TrainingArguments(folder, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True)
    loader = Timed(torch.nn.Linear(1, 1), arguments).get_train_dataloader()
    return loader, iter(loader)


def lightning(make: Make) -> tuple[Any, Iterator[Any]]:
    """What Lightning trains with after ``seed_everything(workers=True)``, which adds a worker_init_fn."""
    import lightning as L
    from lightning.pytorch.utilities.combined_loader import CombinedLoader

    L.seed_everything(0, workers=True, verbose=False)

    class Idle(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any) -> Any:
            return self.layer(torch.zeros(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = L.Trainer(
        accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    given = make()
    trainer.fit(Idle(), given)
    combined: CombinedLoader = trainer.fit_loop._combined_loader
    loader = combined.flattened[0]
    return loader, (batch for batch, _, _ in iter(combined))


def timm(make: Make) -> tuple[Any, Iterator[Any]]:
    """``timm.data.create_loader``, which has torch's loader in its code: headrace's takes its place for the call."""
    from timm.data import create_loader

    given = make()

    before, given.dataset.transform = torch.utils.data.DataLoader, None
    torch.utils.data.DataLoader = headrace.DataLoader  # type: ignore[misc]
    try:
        loader = create_loader(
            given.dataset, (3, 224, 224), given.batch_size, is_training=True, use_prefetcher=False, no_aug=False,
            hflip=0.5, color_jitter=None, interpolation="bilinear", num_workers=given.num_workers,
            persistent_workers=False,
        )  # fmt: skip
    finally:
        torch.utils.data.DataLoader = before  # type: ignore[misc]
    given.dataset.transform = RECIPE
    return loader, iter(loader)


WAYS: dict[str, Callable[[Make], tuple[Any, Iterator[Any]]]] = {
    "accelerate": accelerate,
    "transformers": transformers,
    "lightning": lightning,
    "timm": timm,
}


def rate(way: Callable[[Make], tuple[Any, Iterator[Any]]], make: Make, batches: int) -> tuple[str, float]:
    """The route of the loader that is used, and its images per second."""
    loader, iterator = way(make)
    for _ in range(FIRST):
        next(iterator)
    begin, images = time.perf_counter(), 0
    for _, batch in zip(range(batches), iterator, strict=False):
        images += len(batch[0])
    spent = time.perf_counter() - begin
    with contextlib.suppress(AttributeError, RuntimeError):
        loader.close()
    return str(getattr(loader, "route", f"{type(loader).__module__}.{type(loader).__name__}")), images / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--routes", nargs="+", choices=("native", "deferred"), default=["native", "deferred"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    args = options_of(parser, cores=2, rounds=5)
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT / "tests/python"))
    from torchvision_shim import import_torchvision

    import_torchvision()  # transformers needs it
    results: dict[str, Any] = {}
    heads = ("route", "way", "route of its loader", "bare, images/s", "images/s", "ratio", f"at least {BAR}")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or make_photo_folder(Path(temporary), files=200).train
        paths = [path for path, _ in headrace.ImageFolder(folder).samples]
        for route in args.routes:
            count = (args.batches + FIRST + 8) * args.batch_size

            def make(route: str = route, count: int = count) -> Any:
                data = dataset_of(route, paths, count)
                return headrace.DataLoader(data, args.batch_size, shuffle=True, num_workers=args.cores)

            for name in args.ways:
                if importlib.util.find_spec(name) is None:
                    print(f"| {route} | {name} | not installed | | | | |")
                    continue
                pairs = [
                    (rate(bare, make, args.batches), rate(WAYS[name], make, args.batches)) for _ in range(args.rounds)
                ]
                alone, through = [one[0][1] for one in pairs], [one[1][1] for one in pairs]
                ratios = [b / a for a, b in zip(alone, through, strict=True)]
                found = pairs[-1][1][0]
                results[f"{route} {name}"] = {"route": found, "bare": alone, "images/s": through, "ratios": ratios}
                cells = [route, name, found, f"{median(alone):,.0f}", f"{median(through):,.0f}"]
                cells += [f"{median(ratios):.3f}", "yes" if median(ratios) >= BAR else "NO"]
                print(f"| {' | '.join(cells)} |", flush=True)
    if args.out:
        options = {name: str(value) for name, value in vars(args).items()}
        args.out.write_text(
            json.dumps({"machine": describe(), "options": options, "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
