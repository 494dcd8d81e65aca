"""hard_dev mixed into datasets that other libraries and programs make: each bad sample is named once, all others are
equal, and epochs are complete."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset

import headrace
from headrace import from_hf
from support import hard_files, pictures, silent_pillow
from torchvision_shim import import_torchvision

T = import_torchvision().transforms
SMALL = T.Compose([T.Resize((16, 16)), T.ToTensor()])
LARGEST = 12_000  # bytes of a file, so that the test is short
BATCH = 16

pytestmark = [
    pytest.mark.filterwarnings("ignore:epoch [01]"),
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::headrace.PerformanceWarning"),
    pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:PIL"),
    pytest.mark.filterwarnings("ignore:Truncated File Read"),
]


@pytest.fixture(scope="module")
def files(hard_dev: Path) -> list[bytes]:
    """Odd and broken files, with good ones between them."""
    hard = [path.read_bytes() for path in sorted(hard_files(hard_dev)) if path.stat().st_size < LARGEST]
    good = pictures(len(hard) // 4 + 1)
    return [one for at, data in enumerate(hard) for one in ([good[at // 4], data] if at % 4 == 0 else [data])]


def by_pillow(data: bytes) -> torch.Tensor:
    made: torch.Tensor = SMALL(Image.open(io.BytesIO(data)).convert("RGB"))
    return made


def upright_by_pillow(data: bytes) -> torch.Tensor:
    """As Hugging Face's datasets open images."""
    from PIL import ImageOps

    image: Any = Image.open(io.BytesIO(data))
    image.load()
    if image.getexif().get(0x112) is not None:
        image = ImageOps.exif_transpose(image)
    made: torch.Tensor = SMALL(image.convert("RGB"))
    return made


def by_opencv(data: bytes) -> torch.Tensor:
    cv2 = pytest.importorskip("cv2")
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError("no image")
    return torch.from_numpy(cv2.resize(image, (16, 16)))


class Files(Dataset[Any]):
    def __init__(self, files: list[bytes], read: Any) -> None:
        self.files, self.read = files, read

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return self.read(self.files[index]), index


class Reading:
    """An iterator that goes on after an error."""

    def __init__(self, files: list[bytes]) -> None:
        self.left = enumerate(files)

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> Any:
        number, data = next(self.left)
        return by_pillow(data), number


class Stream(IterableDataset[Any]):
    def __init__(self, files: list[bytes]) -> None:
        self.files = files

    def __iter__(self) -> Iterator[Any]:
        return Reading(self.files)


def read_sample(sample: dict[str, Any]) -> tuple[torch.Tensor, int]:
    return by_pillow(sample["img"]), int(sample["__key__"])


def own_dataset(files: list[bytes], tmp_path: Path) -> Any:
    return Files(files, by_pillow)


def opencv_dataset(files: list[bytes], tmp_path: Path) -> Any:
    return Files(files, by_opencv)


def stream(files: list[bytes], tmp_path: Path) -> Any:
    return Stream(files)


def webdataset_pipeline(files: list[bytes], tmp_path: Path) -> Any:
    wds = pytest.importorskip("webdataset")
    path = tmp_path / "shard.tar"
    with tarfile.open(path, "w") as tar:
        for number, data in enumerate(files):
            info = tarfile.TarInfo(f"{number:05}.img")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return wds.DataPipeline(wds.SimpleShardList([str(path)]), wds.tarfile_to_samples(), wds.map(read_sample))


def hugging_face(files: list[bytes], tmp_path: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    rows = {"image": [{"bytes": data, "path": None} for data in files], "label": list(range(len(files)))}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return from_hf(datasets.Dataset.from_dict(rows, features=features), transform=SMALL)


#: name -> what makes the dataset, what makes a sample without headrace, and the number that names an error.
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "own Dataset": (own_dataset, by_pillow, lambda error: error.index),
    "OpenCV": (opencv_dataset, by_opencv, lambda error: error.index),
    "IterableDataset": (stream, by_pillow, lambda error: error.index),
    "webdataset": (webdataset_pipeline, by_pillow, lambda error: int(error.location[:5])),
    "Hugging Face": (hugging_face, upright_by_pillow, lambda error: error.index),
}


def judge(files: list[bytes], read: Any) -> dict[int, torch.Tensor]:
    """The samples that can be made, as torch's loader would get them."""
    good = {}
    for number, data in enumerate(files):
        try:
            good[number] = read(data)
        except Exception:
            continue
    return good


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
@pytest.mark.parametrize("kind", KINDS)
def test_each_bad_sample_is_named_once(kind: str, workers: int, files: list[bytes], tmp_path: Path) -> None:
    make, read, number_of = KINDS[kind]
    with silent_pillow():
        good = judge(files, read)
        bad = sorted(set(range(len(files))) - set(good))
        assert len(good) > 100 and len(bad) > 20
        loader = headrace.DataLoader(
            make(files, tmp_path), BATCH, num_workers=workers, on_error="skip", max_errors=None
        )
        for _ in range(2):
            found: dict[int, torch.Tensor] = {}
            for images, numbers in loader:
                found |= dict(zip(numbers.tolist(), images, strict=True))
            assert list(found) == list(good)
            different = [number for number, image in found.items() if not torch.equal(image, good[number])]
            assert not different
            assert sorted(map(number_of, loader.errors)) == bad
        without_bad = TorchDataLoader(Files([files[number] for number in good], read), BATCH)
        assert sum(len(images) for images, _ in without_bad) == len(found)
