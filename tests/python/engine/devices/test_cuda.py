"""The GPU path on a real GPU, beyond tests/contract: nvJPEG, and hard files. Long runs are in test_endurance.py.

Skipped on a machine without a GPU, or failed there if FAIL_WITHOUT_CUDA=1.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFiles, SampleError
from headrace import transforms as T
from support import assert_same, blobs, pictures, silent_pillow, train

BYTES = [T.ToImage()]  # uint8 output: differences are grey levels
# The differences allowed to a decoder with another inverse DCT (docs/decisions/0012).
GREATEST, MEAN_BOUND = 4, 0.1


@pytest.fixture(scope="module", autouse=True)
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        if os.environ.get("FAIL_WITHOUT_CUDA") == "1":
            pytest.fail("FAIL_WITHOUT_CUDA=1, and torch finds no NVIDIA GPU")
        pytest.skip("torch finds no NVIDIA GPU")
    return torch.device("cuda", torch.cuda.current_device())


def on_gpu(dataset: Any, **options: Any) -> DataLoader:
    return DataLoader(dataset, device="cuda", **{"batch_size": 16, "num_workers": 4, "seed": 3} | options)


def to_cpu(batches: Any) -> list[Any]:
    return [[one.cpu() for one in batch] for batch in batches]


def needs_decoder(decoder: str) -> None:
    """Skips where this GPU has no such decoder; the reason is the loader's own."""
    try:
        DataLoader(blobs(), device="cuda", decoder=decoder)
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def files(request: pytest.FixtureRequest) -> list[Path]:
    try:
        folder = request.getfixturevalue("imagenet_dev")
    except pytest.skip.Exception:
        return request.getfixturevalue("photographs")
    return sorted(folder.rglob("*.JPEG"))[:96]


def dataset(files: list[Path], transform: Any) -> ImageFiles:
    return ImageFiles(files, range(len(files)), transform)


# ---- the oracle's bytes ----------------------------------------------------------------------------------------------


def test_the_native_path_is_taken() -> None:
    assert on_gpu(blobs())._own.destination.way == "fused", on_gpu(blobs()).explain()


def test_hard_files(hard_dev: Path) -> None:
    from support import hard_files, judge

    good = [path for path in judge(hard_files(hard_dev))[0] if path.stat().st_size < 300_000]
    with silent_pillow():
        ours = on_gpu(dataset(good, train(64)), decoder="cpu")
        assert_same(to_cpu(ours), list(DataLoader(dataset(good, train(64)), 16, seed=3, num_workers=4)))


@pytest.mark.parametrize("decoder", ["hardware", "cuda"])
def test_gpu_decoders_are_near(files: list[Path], decoder: str) -> None:
    needs_decoder(decoder)
    recipe = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *BYTES])
    ours = on_gpu(dataset(files, recipe), decoder=decoder)
    exact = DataLoader(dataset(files, recipe), 16, seed=3, num_workers=4)
    greatest, total, count = 0, 0.0, 0
    for (a, _), (b, _) in zip(to_cpu(ours), exact, strict=True):
        off = (a.int() - b.int()).abs()
        greatest, total, count = max(greatest, int(off.max())), total + float(off.sum()), count + off.numel()
    assert ours._engine is not None
    stages = {stage: items for stage, items, _ in ours._engine.stages()}
    assert stages["device decode"] > 0 and stages["refused"] == 0
    assert greatest <= GREATEST and total / count <= MEAN_BOUND, (greatest, total / count)


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["hardware", "cuda"])
def test_a_corrupt_file_costs_only_itself(decoder: str) -> None:
    needs_decoder(decoder)
    data = list(pictures(24))
    data[4] = data[4][: len(data[4]) // 2]
    damaged = bytearray(data[8])
    damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = bytes(40)
    data[8] = bytes(damaged)
    broken = EncodedImages(data, list(range(24)), train(32))
    exact = DataLoader(broken, 24, seed=3, on_error="skip")
    with pytest.warns(UserWarning), silent_pillow():
        (want,) = exact
    ours = on_gpu(broken, batch_size=24, decoder=decoder, on_error="skip")
    with pytest.warns(UserWarning), silent_pillow():
        (got,) = ours
    assert got[1].tolist() == want[1].tolist()
    raising = on_gpu(broken, batch_size=24, decoder=decoder)
    with pytest.raises(SampleError), silent_pillow():
        next(iter(raising))
