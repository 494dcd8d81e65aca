"""Times loaders of a dataset of one's own that deliver to the GPU, in turns, beside headrace's own datasets.

    python -m bench.gpu.own_datasets [--images DIR] [--seconds S] [--rounds N] [--out FILE.json]

The dataset is a program's: `Image.open`, `convert`, torchvision's RandomResizedCrop, flip, ToTensor and Normalize in
torch's workers. headrace makes the pixels from records (decision 0108), DALI Proxy from the paths that the workers
give it. Before the clock starts, batches of `decoder="cpu"` are compared with those of torch's DataLoader.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import torch

from bench.contenders._common import MEAN, SIZE, STD
from bench.datasets import REPOSITORY
from bench.gpu.contenders import HEADRACE, Batches, Decoded, Work, torchs
from bench.gpu.loaders import run, table
from bench.gpu.turns import finish_with, options_of, work_of

COMPARED = 32  # images
NATIVE, OWN = "headrace, auto", "headrace, a dataset of one's own, auto"


def own(decoder: str) -> Callable[[Work], Batches]:
    """headrace's loader of the program's dataset, with one of its decoders."""

    def batches(work: Work) -> Batches:
        from headrace import DataLoader

        asked: dict[str, Any] = {"shuffle": True, "drop_last": True, "device": work.device, "decoder": decoder}
        if decoder == "cpu":
            assert_equal(DataLoader(Decoded(work.paths), COMPARED, num_workers=1, **asked), work)
        loader = DataLoader(Decoded(work.paths), work.batch, num_workers=work.workers, persistent_workers=True, **asked)
        iterator = iter(loader)
        yield next(iterator)
        if not sum(loader.stats().records.values()):
            raise AssertionError(f"no image was made from a record: {loader.explain()}")
        while True:
            yield from iterator
            iterator = iter(loader)

    return batches


def assert_equal(loader: Any, work: Work) -> None:
    """Compares the first batch with that of torch's DataLoader, to the bit."""
    theirs = torch.utils.data.DataLoader(Decoded(work.paths), COMPARED, shuffle=True, num_workers=1, drop_last=True)
    first = []
    for one in (loader, theirs):
        torch.manual_seed(1)
        first.append(next(iter(one)).cpu())
    if not torch.equal(*first):
        raise AssertionError("the batch differs from that of torch's DataLoader")


class _Proxied(torch.utils.data.Dataset[Any]):
    """Paths that go to DALI's server."""

    def __init__(self, work: Work, proxy: Callable[[Any], Any]) -> None:
        self._paths, self._proxy = work.paths, proxy

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: int) -> Any:
        import numpy as np

        return self._proxy(np.frombuffer(str(self._paths[i]).encode(), np.int8))


def dali_proxy(work: Work) -> Batches:
    """DALI Proxy: torch's workers run a dataset, and DALI's pipeline in the main process makes the pixels."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch.experimental import proxy

    decoder, device = ("mixed", 0) if work.device == "cuda" else ("cpu", None)
    ahead = 2 * work.workers  # the batches that torch's workers make ahead

    @pipeline_def(batch_size=work.batch, num_threads=work.workers, device_id=device, prefetch_queue_depth=ahead)
    def train() -> Any:
        encoded = fn.io.file.read(fn.external_source(name="images", no_copy=True))
        decoded = fn.decoders.image_random_crop(encoded, device=decoder, random_area=(0.08, 1.0))
        resized = fn.resize(decoded, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=True)
        mean, std = [255 * v for v in MEAN], [255 * v for v in STD]
        mirrored = fn.random.coin_flip()
        return fn.crop_mirror_normalize(resized, mirror=mirrored, mean=mean, std=std, output_layout="CHW")

    with proxy.DALIServer(train()) as server:
        options: dict[str, Any] = {"shuffle": True, "drop_last": True, "persistent_workers": True}
        dataset = _Proxied(work, server.proxy)
        loader = proxy.DataLoader(server, dataset, batch_size=work.batch, num_workers=work.workers, **options)
        while True:
            yield from loader


CONTENDERS: dict[str, Callable[[Work], Batches]] = {
    NATIVE: HEADRACE["headrace, auto"],
    OWN: own("auto"),
    "headrace, cpu (exact)": HEADRACE["headrace, cpu (exact)"],
    "headrace, a dataset of one's own, cpu (exact)": own("cpu"),
    "DALI Proxy": dali_proxy,
    "torch DataLoader, torchvision on Pillow": torchs,
}


def main() -> None:
    described = argparse.ArgumentParser(prog="python -m bench.gpu.own_datasets", description=__doc__.splitlines()[0])
    options = options_of(described, seconds=2.5)
    sys.path.insert(0, str(REPOSITORY / "tests" / "python"))
    from torchvision_shim import import_torchvision

    import_torchvision()  # also beside a torch that it was not built for
    result = run(work_of(options), options, CONTENDERS, bare=False)
    finish_with(result, table(result), options)


if __name__ == "__main__":
    main()
