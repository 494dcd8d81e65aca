"""Times whole loaders that end on the GPU: the same files, the same recipe, in turns.

    python -m bench.gpu.loaders [--images DIR] [--seconds S] [--rounds N] [--out FILE.json]

Every contender reads JPEG files, crops and resizes at random to 224 x 224, flips, normalises, and yields float32 NCHW
batches on the GPU. Only headrace's pixels, decoded by the CPU, are torchvision's on Pillow's images.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from bench.contenders._common import MEAN, SIZE, STD
from bench.gpu import images

Batches = Iterator[torch.Tensor]


def headrace(decoder: str) -> Callable[[list[Path], int, int], Batches]:
    """headrace's loader with one of its decoders."""

    def batches(paths: list[Path], batch: int, workers: int) -> Batches:
        from headrace import DataLoader, ImageFiles
        from headrace import transforms as T

        recipe = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        dataset = ImageFiles(paths, [0] * len(paths), T.Compose(recipe))
        loader = DataLoader(
            dataset, batch, shuffle=True, num_workers=workers, device="cuda", decoder=decoder, persistent_workers=True
        )
        while True:
            for made, _ in loader:
                yield made

    return batches


def _read_ahead(paths: list[Path], batch: int, workers: int) -> Iterator[list[bytes]]:
    """Batches of encoded files in a shuffled order, two of them read ahead by threads."""
    with ThreadPoolExecutor(workers) as pool:

        def groups() -> Iterator[list[Any]]:
            while True:
                order = torch.randperm(len(paths)).tolist()
                for at in range(0, len(order) - batch + 1, batch):
                    yield [pool.submit(paths[i].read_bytes) for i in order[at : at + batch]]

        waiting, source = [], groups()
        while True:
            while len(waiting) < 3:
                waiting.append(next(source))
            yield [one.result() for one in waiting.pop(0)]


def _v2() -> tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]:
    """torchvision's transforms on the GPU: of one image, and of a batch."""
    from torchvision.transforms import v2

    one = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])
    all_of_them = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return one, all_of_them


def torchvision(paths: list[Path], batch: int, workers: int) -> Batches:
    """torchvision.io.decode_jpeg on the GPU, in batches, and its v2 transforms there."""
    import numpy as np
    from torchvision.io import ImageReadMode, decode_jpeg

    one, all_of_them = _v2()
    for encoded in _read_ahead(paths, batch, workers):
        tensors = [torch.from_numpy(np.frombuffer(data, np.uint8).copy()) for data in encoded]
        decoded = decode_jpeg(tensors, mode=ImageReadMode.RGB, device="cuda")
        yield all_of_them(torch.stack([one(image) for image in decoded]))


def nvimgcodec(paths: list[Path], batch: int, workers: int) -> Batches:
    """nvImageCodec decodes (engines and CUDA cores as it sees fit), torchvision's v2 transforms on the GPU."""
    from nvidia import nvimgcodec as codec

    decoder = codec.Decoder()
    one, all_of_them = _v2()
    for encoded in _read_ahead(paths, batch, workers):
        decoded = [torch.as_tensor(image, device="cuda").permute(2, 0, 1) for image in decoder.decode(encoded)]
        yield all_of_them(torch.stack([one(image) for image in decoded]))


def dali(paths: list[Path], batch: int, workers: int) -> Batches:
    """DALI's mixed decoder with a random crop, and its GPU operators."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=batch, num_threads=workers, device_id=0)
    def train() -> Any:
        encoded, _ = fn.readers.file(files=[str(path) for path in paths], random_shuffle=True, name="files")
        decoded = fn.decoders.image_random_crop(encoded, device="mixed", random_area=(0.08, 1.0))
        resized = fn.resize(decoded, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=True)
        mean, std = [255 * v for v in MEAN], [255 * v for v in STD]
        mirrored = fn.random.coin_flip()
        return fn.crop_mirror_normalize(resized, mirror=mirrored, mean=mean, std=std, output_layout="CHW")

    pipe = train()
    pipe.build()
    for made in DALIGenericIterator([pipe], ["images"], auto_reset=True, size=-1):
        yield made[0]["images"]


CONTENDERS: dict[str, Callable[[list[Path], int, int], Batches]] = {
    "headrace, auto": headrace("auto"),
    "headrace, hardware": headrace("hardware"),
    "headrace, cuda": headrace("cuda"),
    "headrace, cpu (exact)": headrace("cpu"),
    "torchvision decode_jpeg + v2 on the GPU": torchvision,
    "nvImageCodec + v2 on the GPU": nvimgcodec,
    "DALI": dali,
}


def measure(batches: Batches, seconds: float) -> float:
    """Images a second from batch to batch, the GPU's work included."""
    for _ in range(4):
        made = next(batches)
    if made.shape[1:] != (3, SIZE, SIZE) or made.device.type != "cuda" or made.dtype != torch.float32:
        raise AssertionError(f"not the batch that was asked for: {made.shape}, {made.dtype}, {made.device}")
    torch.cuda.synchronize()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        count += len(next(batches))
    torch.cuda.synchronize()
    return count / (time.perf_counter() - begin)


def run(folder: Path | None, batch: int, seconds: float, rounds: int, deadline: float) -> dict[str, Any]:
    """All contenders in turns, until the rounds are done or the deadline (time.monotonic) is near."""
    workers = len(os.sched_getaffinity(0))
    paths = images.files(folder)
    alive: dict[str, Batches] = {}
    failed: dict[str, str] = {}
    rates: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name, make in CONTENDERS.items():
            if name in failed or time.monotonic() > deadline:
                continue
            try:
                stream = alive.setdefault(name, make(paths, batch, workers))
                rates[name].append(measure(stream, seconds))
            except Exception as error:  # not installed, no such decoder, a driver: each library has words of its own
                failed[name] = f"{type(error).__name__}: {error}"
    table = {
        name: {"median": statistics.median(found), "least": min(found), "greatest": max(found)}
        for name, found in rates.items()
        if found
    }
    return {"files": len(paths), "batch": batch, "workers": workers, "images_per_s": table, "failed": failed}


def markdown(result: dict[str, Any]) -> str:
    """A table for people."""
    lines = [f"{result['workers']} threads, batches of {result['batch']}", "", "| loader | images/s |", "|---|---|"]
    for name, rate in result["images_per_s"].items():
        lines.append(f"| {name} | {rate['median']:,.0f} ({rate['least']:,.0f}-{rate['greatest']:,.0f}) |")
    lines += [f"| {name} | - ({why.splitlines()[0][:90]}) |" for name, why in result["failed"].items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.loaders", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=110.0)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    result = run(args.images, args.batch, args.seconds, args.rounds, time.monotonic() + args.most_seconds)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(markdown(result), flush=True)
    os._exit(0)  # libraries with threads of their own may hang on the way out


if __name__ == "__main__":
    main()
