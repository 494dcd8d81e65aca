"""Pipelines of webdataset in the loader: torch's batches, and a hint; pipelines over the native loader."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader, TarShards
from support import assert_same, pictures, train

webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
# Its files, which it leaves to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

COUNT = 24


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for shard in range(2):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            for i in range(shard, COUNT, 2):
                for extension, data in (("jpg", pictures(COUNT)[i]), ("cls", b"%d" % i)):
                    info = tarfile.TarInfo(f"{i:04}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return str(tmp_path / "{0..1}.tar")


def pipeline(pattern: str, shuffle: bool) -> Any:
    samples = webdataset.WebDataset(pattern, shardshuffle=False)
    if shuffle:
        samples = samples.shuffle(10, rng=random.Random(1))
    return samples.decode("pil").to_tuple("jpg", "cls").map_tuple(train(24), lambda label: 2 * label)


def seeded(loader: Iterable[Any]) -> list[Any]:
    random.seed(5)
    torch.manual_seed(5)
    return list(loader)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_torchs_loader(pattern: str, workers: int, shuffle: bool) -> None:
    options: dict[str, Any] = {"batch_size": 5, "num_workers": workers}
    if workers:
        options["multiprocessing_context"] = "fork"  # the lambda cannot be sent
    theirs = seeded(torch.utils.data.DataLoader(pipeline(pattern, shuffle), **options))
    loader = DataLoader(pipeline(pattern, shuffle), **options)
    assert not loader.native
    assert assert_same(seeded(loader), theirs) == (5 if workers == 0 else 6)
    assert "headrace.TarShards(urls) reads the same shards natively" in str(loader.explain())


def test_the_replacement_reads_the_same_samples(pattern: str) -> None:
    theirs = {
        int(label): image for image, label in webdataset.WebDataset(pattern, shardshuffle=False).to_tuple("jpg", "cls")
    }
    data = TarShards(pattern, "jpg", transform=train(24), target_transform=lambda label: 2 * label)
    assert {data.target(i) // 2: data.read(i) for i in range(COUNT)} == theirs


def test_stages_of_webdataset_over_the_native_loader(pattern: str) -> None:
    """What WebLoader does with torch's loader: `wds.WebLoader(dataset, ...).unbatched().shuffle(...).batched(...)`."""
    loader = DataLoader(TarShards(pattern, transform=train(24)), 5, num_workers=1, seed=2, shuffle=True)
    expected = torch.cat([images for images, _ in loader])
    assert loader.native
    loader.set_epoch(0)
    stages = webdataset.DataPipeline(loader, webdataset.filters.unbatched(), webdataset.batched(6))
    batches = list(stages)
    assert torch.equal(torch.cat([torch.as_tensor(images) for images, _ in batches]), expected)
