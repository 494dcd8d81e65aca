"""What the training examples share: their options, photographs to train on, one line a step, and a sudden end.

The training loops themselves are in the other files, each as it would stand in a script of your own.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from headrace import ImageFolder, transforms
from headrace._cli.demo.photo_folder import make_photo_folder

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Options that all of the examples have."""
    made = argparse.ArgumentParser(description=documentation.splitlines()[0] if documentation else None)
    made.add_argument("folder", nargs="?", type=Path, help="a folder with one sub-folder a class")
    made.add_argument("--epochs", type=int, default=2)
    made.add_argument("--batch-size", type=int, default=8)
    made.add_argument("--size", type=int, default=64, help="height and width of the images that are trained on")
    made.add_argument("--workers", type=int, default=2)
    return made


def resumable(documentation: str | None) -> argparse.ArgumentParser:
    """And those of examples that go on after they were killed."""
    made = parser(documentation)
    made.add_argument("--checkpoint", type=Path, help="saved after each batch; started again, the run goes on there")
    made.add_argument("--kill-after", type=int, help="end by SIGKILL when so many batches are trained on and saved")
    return made


def photographs(options: argparse.Namespace) -> ImageFolder:
    """The images to train on: those of the folder, or the photographs inside headrace."""
    folder = options.folder or make_photo_folder(Path(tempfile.gettempdir()) / "headrace-example", files=100).train
    steps = [
        transforms.RandomResizedCrop(options.size, scale=(0.35, 1)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return ImageFolder(folder, transforms.Compose(steps))


class Log:
    """Prints the loss of each step, to the last bit, and in the end how many images a second went through the loop.

    Attributes:
        taken: batches trained on, those of an earlier run that this one continues among them.
    """

    def __init__(self, taken: int = 0) -> None:
        self.taken = taken
        self._images = 0
        self._begin: float | None = None

    def step(self, loss: torch.Tensor | float, images: int, *, quiet: bool = False) -> None:
        """To be called when a step is done; of several processes, one speaks."""
        value = loss if isinstance(loss, float) else loss.item()
        if not quiet:
            print(f"step {self.taken}: loss {value:.6f} {value.hex()}", flush=True)
        self.taken += 1
        if self._begin is None:  # the first step warms up: it starts threads, allocates, perhaps compiles
            self._begin = time.perf_counter()
        else:
            self._images += images

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs to know of it."""
        return {"taken": self.taken}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on counting."""
        self.taken = state["taken"]

    def rate(self) -> float | None:
        """Images a second since the first step; None: there was but one."""
        if self._begin is None or not self._images:
            return None
        return self._images / (time.perf_counter() - self._begin)

    def end(self) -> None:
        """To be called when all is done."""
        rate = self.rate()
        if rate is not None:
            print(f"{rate:.1f} images/s")


def leave_group() -> None:
    """Leaves the process group that a trainer has opened. It must be called before the program ends.

    A thread of gloo that still drops a tensor while the interpreter ends waits for the GIL, and aborts the process
    ("terminate called without an active exception"): torch 2.13 with Python 3.11.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def save(state: dict[str, Any], path: Path) -> None:
    """Saves a checkpoint so that whoever kills the job meanwhile leaves the last one whole."""
    unfinished = path.with_suffix(".unfinished")
    torch.save(state, unfinished)
    unfinished.replace(path)


def end_suddenly() -> None:
    """Ends this process as ``kill -9`` does: nothing is flushed, closed or saved any more."""
    os.kill(os.getpid(), signal.SIGKILL)
