"""The process that trains: epoch after epoch under faults, until it is killed.

    python -m bench.soak.trainer FOLDER IMAGES EPOCHS SEED

The library of faults must be in LD_PRELOAD, and FOLDER/board must exist. What is found goes to FOLDER/findings.jsonl,
the memory of the process to FOLDER/memory.jsonl.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import io
import json
import os
import random
import shutil
import sys
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from bench.soak import answers, heap, weather
from bench.soak.attempts import Attempt, failed
from bench.soak.board import Board
from bench.soak.checking import Check
from bench.soak.library import fail_allocations_of
from bench.soak.material import Material
from bench.soak.recipes import RECIPES, SEED, recipe
from headrace import DataLoader
from headrace._loading.native.loader_attributes import OnError

_MOST_ATTEMPTS = 30  # of an epoch under faults; the next one has none
_MEMORY_EVERY_US = 20_000_000
_MOST_REPLACEMENTS = 1000  # kept: this table of the soak's own is not to look like a leak
_WAYS = {"whole": 40, "left": 15, "interrupted": 25, "forked": 3, "short of files": 5}


@dataclass(frozen=True)
class Epoch:
    """What is trained: drawn once per epoch."""

    recipe: str
    number: int
    source: str
    on_error: OnError
    batch_size: int
    way: str
    chances: dict[str, float]

    @property
    def few_files(self) -> bool:
        return self.way == "short of files"


class Trainer:
    """Trains epochs.

    Args:
        folder: holds the board and the material.
        count: number of images.
        epochs: number of different epochs of each recipe.
        seed: of what is drawn.
    """

    def __init__(self, folder: Path, count: int, epochs: int, seed: int) -> None:
        self.folder, self.epochs = folder, epochs
        self.board, self.draw = Board(folder / "board"), random.Random(seed)
        self.material = Material(folder / "material", count)
        self.answers = answers.Answers(answers.made(self.material, epochs))
        self._replacements: dict[tuple[str, int, int, int], int] = {}
        self._measured = -_MEMORY_EVERY_US

    def drawn(self) -> Epoch:
        """Returns an epoch to train."""
        draw = self.draw
        source = draw.choice(["files", "files", "memory", "shards", "shards", "indexed shards", "damaged"])
        ways: list[OnError] = ["skip", "replace"] if source == "damaged" else ["raise", "raise", "skip", "replace"]
        on_error = draw.choice(ways)
        # A view's replacement is a list of tensors, which the oracle's dataset packs.
        names = [name for name in RECIPES if name != "views" or on_error != "replace"]
        (way,) = draw.choices([*_WAYS], [*_WAYS.values()])
        number, batch_size = (
            draw.randrange(self.epochs),
            draw.choices([1, 5, 16, 64, 128, 256], [1, 2, 4, 16, 16, 8])[0],
        )
        return Epoch(draw.choice(names), number, source, on_error, batch_size, way, weather.drawn(draw))

    def train(self, epoch: Epoch) -> bool:
        """Trains one epoch to its end, in as many attempts as it takes. Returns whether all was right."""
        self.board.advance("progress")
        check = Check(
            self.board,
            self.answers.order(epoch.recipe, epoch.number),
            self.answers.sums(epoch.recipe, epoch.number),
            epoch.batch_size,
            epoch.on_error,
            lambda index, other: self._replacement(epoch.recipe, epoch.number, index, other),
        )
        state: dict[str, Any] | None = None
        breaks = self.draw.randrange(1, 6)
        for attempt in range(_MOST_ATTEMPTS + 2):
            if attempt == breaks:
                epoch = replace(epoch, way="whole")
            if attempt == _MOST_ATTEMPTS:
                epoch = replace(epoch, chances={})
            state = self._attempt(epoch, check, state)
            if check.findings or check.complete:
                break
        else:
            check.findings.append(f"unexpected: only {check.place} samples in {attempt + 1} attempts")
            self.board.add("unexpected")
        for finding in check.findings:
            self._tell(epoch, finding)
        return not check.findings

    def _attempt(self, epoch: Epoch, check: Check, state: dict[str, Any] | None) -> dict[str, Any] | None:
        """Iterates over the rest of an epoch with a new loader. Returns the state to resume from."""
        before, loader, ended = self.board.faults(), None, False
        self.board.arm(epoch.chances)
        try:
            loader = self._loader(epoch, state)
            ended = self._iterated(loader, epoch, check)
        except Exception as error:
            self.board.disarm()
            self.board.add("errors_raised")
            self._judge(error, epoch, check, before)
        finally:
            self.board.disarm()
        if loader is None:
            return state
        try:
            for reported in loader.errors:
                if not (epoch.source == "damaged" and self.material.damaged(reported.index)):
                    self._judge(reported, epoch, check, before)
            return self._settled(loader, epoch, check, ended)
        except Exception:
            check.findings.append(f"unexpected: {traceback.format_exc()} after the attempt")
            self.board.add("unexpected")
            return state

    def _judge(self, error: Exception, epoch: Epoch, check: Check, before: dict[str, int]) -> None:
        """Notes an error that no fault since `before` explains."""
        happened = {name: count - before[name] for name, count in self.board.faults().items() if count > before[name]}
        self.board.add("out_of_descriptors", int(getattr(error, "errno", None) == errno.EMFILE))
        if not weather.excused(error, happened, epoch.few_files):
            check.findings.append(f"unexpected: {''.join(traceback.format_exception(error))} after {happened}")
            self.board.add("unexpected")

    def _iterated(self, loader: Any, epoch: Epoch, check: Check) -> bool:
        attempt = Attempt(self.board, self.draw, check)
        if epoch.way == "left":
            return attempt.left(loader)
        if epoch.way == "interrupted":
            return attempt.interrupted(loader)
        if epoch.way == "forked":
            chance = random.Random(self.draw.random())
            child = replace(self.drawn(), way="whole", chances={})
            return attempt.forked(loader, lambda: self._trained_in_child(child, chance))
        if epoch.few_files:
            return attempt.short_of_files(loader)
        return attempt.whole(loader)

    def _trained_in_child(self, epoch: Epoch, chance: random.Random) -> bool:
        self.draw = chance
        return self.train(epoch)

    def _loader(self, epoch: Epoch, state: dict[str, Any] | None) -> Any:
        draw = self.draw
        transform, options = recipe(epoch.recipe)
        index = self.material.folder / "i"
        if draw.random() < 0.1:
            shutil.rmtree(index, ignore_errors=True)
        workers = draw.choice([0, 0, 1, 2, 2, 3, 5])
        if workers:
            options = {**options, "prefetch_factor": draw.randrange(1, 4), "persistent_workers": draw.random() < 0.3}
        if epoch.source != "damaged" and draw.random() < 0.2:
            options = {**options, "entry_points": 1 << 20}
        self.board.add("loaders")
        loader = DataLoader(
            self.material.dataset(epoch.source, transform),
            epoch.batch_size,
            shuffle=True,
            seed=SEED,
            num_workers=workers,
            on_error=epoch.on_error,
            max_errors=None,
            **options,
        )
        if state is None:
            loader.set_epoch(epoch.number)
        else:
            loader.load_state_dict(state)
            self.board.add("resumes")
        return loader

    def _settled(self, loader: Any, epoch: Epoch, check: Check, ended: bool) -> dict[str, Any]:
        """Checks where the loader stands, and closes it. Returns its state, as a checkpoint would hold it."""
        told = failed(loader)
        if ended:
            check.end(told)
        out = io.BytesIO()
        torch.save(loader.state_dict(), out)
        loader.close()
        state: dict[str, Any] = torch.load(io.BytesIO(out.getvalue()), weights_only=True)
        if not ended and state["epoch"] == epoch.number:
            check.resume(state["position"], told)
        elif not ended:  # an interrupt between the last batch and the end of the loop
            check.end(told)
        return state

    def _replacement(self, name: str, epoch: int, index: int, other: int) -> int:
        """Returns the checksum of sample `other` with the random numbers of sample `index`."""
        key = (name, epoch, index, other)
        if key not in self._replacements:
            armed = self.board.armed
            self.board.disarm()
            transform, options = recipe(name)
            loader = DataLoader(self.material.dataset("memory", transform), 64, seed=SEED, **options)
            loader.set_epoch(epoch)
            oracle: Any = loader.reference().dataset
            image, _ = oracle.sample(other, oracle.draws_of(index, 0))
            if len(self._replacements) >= _MOST_REPLACEMENTS:
                self._replacements.clear()
            self._replacements[key] = answers.checksums(image[None])[0]
            if armed:
                self.board.rearm()
        return self._replacements[key]

    def _tell(self, epoch: Epoch, finding: str) -> None:
        with (self.folder / "findings.jsonl").open("a") as file:
            print(json.dumps({"epoch": repr(epoch), "finding": finding}), file=file)

    def measure(self) -> None:
        """Notes the memory of this process every 20 seconds, while no loader lives."""
        now = self.board.clock("awake_us")
        if now - self._measured < _MEMORY_EVERY_US:
            return
        self._measured = now
        gc.collect()
        in_use = heap.trimmed()
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        anonymous = int(status["RssAnon"].split()[0]) / 1024
        noted = {"s": now / 1e6, "anonymous_mb": round(anonymous, 2), "threads": int(status["Threads"])}
        if in_use is not None:
            noted["in_use_mb"] = round(in_use / 2**20, 2)
        noted["descriptors"] = len(list(Path("/proc/self/fd").iterdir()))
        with (self.folder / "memory.jsonl").open("a") as file:
            print(json.dumps({"pid": os.getpid(), **noted}), file=file)

    def warm_up(self) -> None:
        """Imports what any epoch imports: an import may not find a file descriptor later."""
        for name in RECIPES:
            ways: tuple[tuple[str, OnError], ...] = (
                ("files", "raise"),
                ("indexed shards", "skip"),
                ("damaged", "skip"),
            )
            for source, on_error in ways:
                self.train(Epoch(name, 0, source, on_error, 64, "whole", {}))


def main() -> None:
    faulthandler.enable()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of skipped samples: the check reads loader.errors
    folder, count, epochs, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    trainer = Trainer(folder, count, epochs, seed)
    fail_allocations_of("headrace/libheadrace_core")
    trainer.warm_up()
    while True:
        trainer.train(trainer.drawn())
        trainer.measure()


if __name__ == "__main__":
    main()
