"""Epochs of a program's own dataset with and without a PixelCache, and the bytes in all its processes.

    python -m bench.pixel_cache [--folder FOLDER] [--workers N] [--out FILE]

OpenCV reads each photograph and makes its shorter side 256; the transform crops 224 x 224 and flips. The photographs
come ten times each. The bytes are the proportional shares (PSS) of the main process and its workers after the last
epoch: memory that several have counts once. Batches of both are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import cv2
import torch
from torch.utils.data import DataLoader, Dataset

import headrace
from bench.machine import describe

TIMES, EPOCHS, SIDE, SIZE = 10, 4, 256, 224


class Photographs(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        self.paths = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))

    def __len__(self) -> int:
        return TIMES * len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = cv2.imread(self.paths[index % len(self.paths)])
        assert image is not None
        height, width = image.shape[:2]
        scale = SIDE / min(height, width)
        return cv2.resize(image, (max(SIDE, round(width * scale)), max(SIDE, round(height * scale))))


def crop(image: Any) -> torch.Tensor:
    top, left = (int(torch.randint(one - SIZE + 1, ())) for one in image.shape[:2])
    part = torch.from_numpy(image[top : top + SIZE, left : left + SIZE].copy())
    return part.flip(1) if torch.rand(()) < 0.5 else part


class Uncached(Photographs):
    def __getitem__(self, index: int) -> torch.Tensor:
        return crop(super().__getitem__(index))


def bytes_in(processes: list[int]) -> dict[str, int]:
    """Proportional shares of the processes, by kind."""
    found = dict.fromkeys(("Pss", "Pss_Shmem"), 0)
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            name = line.partition(":")[0]
            if name in found:
                found[name] += int(line.split()[1]) << 10
    return found


def run(kind: Any, dataset: Dataset[Any], workers: int) -> tuple[dict[str, Any], list[float]]:
    """The samples a second of each epoch, the bytes, and sums of the batches of the last one."""
    loader = kind(dataset, 32, num_workers=workers, persistent_workers=True)
    torch.manual_seed(0)
    speeds, sums = [], list[float]()
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        sums = [float(batch.double().sum()) for batch in loader]
        speeds.append(round(len(dataset) / (time.perf_counter() - begin), 1))  # type: ignore[arg-type]
    processes = [os.getpid(), *(worker.pid for worker in loader._iterator._workers)]
    return {"samples_per_s": speeds, "bytes": bytes_in(processes)}, sums


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    figures: dict[str, Any] = {"machine": describe(), "workers": asked.workers}
    sums = {}
    for name, kind in (("torch", DataLoader), ("headrace", headrace.DataLoader)):
        figures[name], sums[name] = run(kind, Uncached(asked.folder), asked.workers)
        cache = headrace.PixelCache(Photographs(asked.folder), "4 GB", crop)
        figures[f"{name}, cached"], sums[f"{name}, cached"] = run(kind, cache, asked.workers)
        figures["kept"] = {"samples": cache.kept().samples, "bytes": cache.kept().bytes}
        del cache
    figures["equal"] = len({tuple(one) for one in sums.values()}) == 1
    text = json.dumps(figures, indent=1)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
