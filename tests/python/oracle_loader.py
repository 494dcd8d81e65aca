"""A DataLoader whose batches `reference()` makes, and a runner that replaces headrace's by it in any program.

    python tests/python/oracle_loader.py WHOSE PROGRAM [ARGUMENTS]

WHOSE selects the program's loader: `native` is headrace's own, `oracle` is the oracle's, `processes` is the oracle's
in torch's worker processes, one for each thread that the program requests.

The oracle's batches come from Pillow and torch alone: in its process, the constructor of the native engine raises.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace
from headrace._engine import engine
from headrace._loading.epoch.checkpoint import Progress
from torchvision_shim import import_torchvision


class OracleLoader(headrace.DataLoader):
    """headrace's DataLoader with its epochs and its state, but with the oracle's batches."""

    processes = False  # whether torch's worker processes make the batches, one for each of the loader's threads

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        reference = self.reference()  # of the epoch that begins here
        if self.processes and self.num_workers:
            reference.num_workers, reference.prefetch_factor = self.num_workers, 2
        progress, _order = self._epochs.begin()
        self._runner.progress = progress
        engine.Engine.__new__ = _no_engine  # type: ignore[assignment, method-assign]  # also in processes that Ray started
        if "HEADRACE_ORACLE_LOG" in os.environ:  # records that the oracle delivered, in any process
            with open(os.environ["HEADRACE_ORACLE_LOG"], "a") as file:  # noqa: PTH123
                print(f"epoch {progress.epoch}", file=file)
        return _Counted(iter(reference), progress)


def _no_engine(*_: Any, **__: Any) -> None:
    raise RuntimeError("a native engine in a run of the oracle's")


class _Counted:
    """Counts the batches that the oracle has yielded, as the native iterator does: a saved state uses the count."""

    def __init__(self, batches: Iterator[Any], progress: Progress) -> None:
        self._batches, self._progress = batches, progress

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self._progress.finish()
            raise
        self._progress.settled += 1
        return batch


def main() -> None:
    # Not __main__: the processes that Ray and torchrun start import the module by this name.
    import oracle_loader

    whose, program, *rest = sys.argv[1:]
    if whose not in ("native", "oracle", "processes"):
        raise SystemExit(f"{whose} is nobody's loader")
    if whose != "native":
        oracle_loader.OracleLoader.processes = whose == "processes"
        engine.Engine.__new__ = _no_engine  # type: ignore[assignment, method-assign]
        headrace.DataLoader = oracle_loader.OracleLoader  # type: ignore[misc]
    if importlib.util.find_spec("torchvision") and re.search(
        "timm|lightning|transformers|diffusers|own_dataset", Path(program).name
    ):
        import_torchvision()  # before these programs do: its operators may not load here
    sys.argv = [program, *rest]
    sys.path.insert(0, str(Path(program).resolve().parent))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
