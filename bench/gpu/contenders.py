"""The contenders on the GPU: streams of batches of the same files, randomly cropped, resized and flipped, normalised.

Every stream reads JPEG files and yields float32 NCHW batches of 224 x 224 on the GPU, without end. The pixels equal
those of torchvision on Pillow's images only for headrace with CPU decoding, and for torch's DataLoader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.contenders._common import MEAN, SIZE, STD

Batches = Iterator[torch.Tensor]


@dataclass(frozen=True)
class Work:
    """The input of every stream. `device`: "cuda", or "emulated" for streams that also run without a GPU."""

    paths: list[Path]
    batch: int
    workers: int
    device: str = "cuda"


def headrace(decoder: str, **options: Any) -> Callable[[Work], Batches]:
    """headrace's loader with one of its decoders. After the first batch a second loader is verified by the oracle."""

    def batches(work: Work) -> Batches:
        from headrace import DataLoader, ImageFiles
        from headrace import transforms as T

        def loader() -> DataLoader[Any]:
            asked = {"num_workers": work.workers, "persistent_workers": True, "drop_last": True} | options
            return DataLoader(dataset, work.batch, shuffle=True, device=work.device, decoder=decoder, **asked)

        recipe = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        dataset = ImageFiles(work.paths, [0] * len(work.paths), T.Compose(recipe))
        ours = loader()
        iterator = iter(ours)
        yield next(iterator)[0]
        loader().verify(n=1)
        while True:
            for made, _ in iterator:
                yield made
            iterator = iter(ours)

    return batches


class Decoded(torch.utils.data.Dataset[torch.Tensor]):
    """Files opened by Pillow, with torchvision's transforms."""

    def __init__(self, paths: list[Path]) -> None:
        from torchvision import transforms as T

        steps = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        self._paths, self._transform = paths, T.Compose(steps)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: int) -> torch.Tensor:
        from PIL import Image

        made: torch.Tensor = self._transform(Image.open(self._paths[i]).convert("RGB"))
        return made


def torchs(work: Work) -> Batches:
    """torch's DataLoader, torchvision on Pillow, pinned memory and an asynchronous copy."""
    loader = torch.utils.data.DataLoader(
        Decoded(work.paths),
        work.batch,
        shuffle=True,
        num_workers=work.workers,
        pin_memory=work.device == "cuda",
        drop_last=True,
        persistent_workers=True,
    )
    while True:
        for made in loader:
            yield made.to(work.device, non_blocking=True) if work.device == "cuda" else made


def _read_ahead(work: Work) -> Iterator[list[bytes]]:
    """Batches of encoded files in a shuffled order; threads read two batches ahead."""
    if work.batch > len(work.paths):
        raise ValueError(f"a batch of {work.batch} needs as many files, not {len(work.paths)}")
    with ThreadPoolExecutor(work.workers) as pool:

        def groups() -> Iterator[list[Any]]:
            while True:
                order = torch.randperm(len(work.paths)).tolist()
                for at in range(0, len(order) - work.batch + 1, work.batch):
                    yield [pool.submit(work.paths[i].read_bytes) for i in order[at : at + work.batch]]

        waiting: list[list[Any]] = []
        source = groups()
        while True:
            while len(waiting) < 3:
                waiting.append(next(source))
            yield [one.result() for one in waiting.pop(0)]


def _v2() -> tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]:
    """torchvision's transforms on the GPU: for one image, and for a batch."""
    from torchvision.transforms import v2

    one = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])
    all_of_them = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return one, all_of_them


def torchvision(work: Work) -> Batches:
    """torchvision.io.decode_jpeg on the GPU, in batches, and its v2 transforms there."""
    import numpy as np
    from torchvision.io import ImageReadMode, decode_jpeg

    one, all_of_them = _v2()
    for encoded in _read_ahead(work):
        tensors = [torch.from_numpy(np.frombuffer(data, np.uint8).copy()) for data in encoded]
        decoded = decode_jpeg(tensors, mode=ImageReadMode.RGB, device="cuda")
        yield all_of_them(torch.stack([one(image) for image in decoded]))


def nvimgcodec(work: Work) -> Batches:
    """nvImageCodec decodes (it chooses engines or CUDA cores), with torchvision's v2 transforms on the GPU."""
    from nvidia import nvimgcodec as codec

    decoder = codec.Decoder()
    one, all_of_them = _v2()
    for encoded in _read_ahead(work):
        decoded = [torch.as_tensor(image, device="cuda").permute(2, 0, 1) for image in decoder.decode(encoded)]
        yield all_of_them(torch.stack([one(image) for image in decoded]))


def dali(work: Work) -> Batches:
    """DALI's mixed decoder with a random crop, and its GPU operators."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=work.batch, num_threads=work.workers, device_id=0)
    def train() -> Any:
        encoded, _ = fn.readers.file(files=[str(path) for path in work.paths], random_shuffle=True, name="files")
        decoded = fn.decoders.image_random_crop(encoded, device="mixed", random_area=(0.08, 1.0))
        resized = fn.resize(decoded, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=True)
        mean, std = [255 * v for v in MEAN], [255 * v for v in STD]
        mirrored = fn.random.coin_flip()
        return fn.crop_mirror_normalize(resized, mirror=mirrored, mean=mean, std=std, output_layout="CHW")

    pipe = train()
    pipe.build()
    for made in DALIGenericIterator([pipe], ["images"], auto_reset=True, size=-1):
        yield made[0]["images"]


HEADRACE = {
    "headrace, auto": headrace("auto"),
    "headrace, hardware": headrace("hardware"),
    "headrace, cuda": headrace("cuda"),
    "headrace, cpu (exact)": headrace("cpu"),
}
PEERS: dict[str, Callable[[Work], Batches]] = {
    "torchvision decode_jpeg + v2 on the GPU": torchvision,
    "nvImageCodec + v2 on the GPU": nvimgcodec,
    "DALI": dali,
    "torch DataLoader, torchvision on Pillow": torchs,
}
CONTENDERS: dict[str, Callable[[Work], Batches]] = HEADRACE | PEERS


def first_batch(batches: Batches, work: Work) -> torch.Tensor:
    """The first batch of a stream; raises if its shape, dtype or device is wrong."""
    made = next(batches)
    where = "cuda" if work.device == "cuda" else "cpu"
    if made.shape != (work.batch, 3, SIZE, SIZE) or made.device.type != where or made.dtype != torch.float32:
        raise AssertionError(f"not the batch that was asked for: {made.shape}, {made.dtype}, {made.device}")
    return made
