"""Three datasets of one's own whose batches are made on the GPU: the argument `device` is the only change.

    pip install torchvision datasets webdataset
    python examples/own_dataset_on_gpu.py [FOLDER] [--device cuda]

Without a folder it uses the photographs inside headrace, without a GPU an emulated one, which makes equal batches. The
workers run the datasets; the pixels that no code looks at are decoded and resized in the main process and on the GPU.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import shared
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms

import headrace
from headrace._cli.demo.photo_folder import make_photo_folder


def view(size: int, scale: tuple[float, float]) -> transforms.Compose:
    """One random view of an image, as DINO takes them."""
    draws = [
        transforms.RandomResizedCrop(size, scale),
        transforms.RandomHorizontalFlip(),
        transforms.RandomGrayscale(0.2),
    ]
    return transforms.Compose([*draws, transforms.ToTensor(), transforms.Normalize(shared.MEAN, shared.STD)])


class MultiCrop(Dataset[list[torch.Tensor]]):
    """Two large views and four small ones of each image, as DINOv2 trains on."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths, self.large, self.small = paths, view(64, (0.4, 1.0)), view(32, (0.05, 0.4))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        image = Image.open(self.paths[index]).convert("RGB")
        return [*(self.large(image) for _ in range(2)), *(self.small(image) for _ in range(4))]


def captions_of(paths: list[Path], folder: Path) -> Any:
    """Images and captions in two tar shards, as CLIP trains on; each worker reads one."""
    import webdataset

    with webdataset.ShardWriter(str(folder / "%d.tar"), maxcount=(len(paths) + 1) // 2, verbose=0) as shards:
        for number, path in enumerate(paths):
            shards.write({"__key__": f"{number:06d}", "jpg": path.read_bytes(), "txt": f"a photo: {path.stem}"})
    steps = [transforms.Resize(64), transforms.CenterCrop(64), transforms.ToTensor()]
    transform = transforms.Compose([*steps, transforms.Normalize(shared.MEAN, shared.STD)])
    stream = webdataset.WebDataset(sorted(map(str, folder.glob("*.tar"))), shardshuffle=False)
    return stream.decode("pil").to_tuple("jpg", "txt").map_tuple(transform, str)


class Transform:
    """What a table's rows become when they are read."""

    def __init__(self) -> None:
        self.view = view(64, (0.35, 1.0))

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"pixel_values": [self.view(one.convert("RGB")) for one in rows["image"]], "label": rows["label"]}


def table_of(paths: list[Path]) -> Any:
    """A table of Hugging Face's datasets."""
    import datasets

    table = datasets.Dataset.from_dict({"image": [str(path) for path in paths], "label": list(range(len(paths)))})
    return table.cast_column("image", datasets.Image()).with_transform(Transform())


def describe(batch: Any) -> str:
    """The shapes and devices of a batch."""
    if isinstance(batch, torch.Tensor):
        return f"{tuple(batch.shape)} on {batch.device}"
    if isinstance(batch, dict):
        return ", ".join(f"{name} {describe(one)}" for name, one in batch.items())
    return ", ".join(describe(one) if isinstance(one, torch.Tensor) else f"{len(one)} texts" for one in batch)


def main() -> None:
    """Takes an epoch of each dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of JPEGs; its sub-folders do not matter")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "emulated")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    folder = options.folder or make_photo_folder(Path(tempfile.gettempdir()) / "headrace-example", files=100).train
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    common = {"batch_size": 16, "num_workers": options.workers, "device": options.device}
    # headrace warns where torch's workers run the dataset, which is what this shows.
    warnings.filterwarnings("ignore", "torch's DataLoader delivers", headrace.PerformanceWarning)
    with tempfile.TemporaryDirectory() as temporary:
        captions = captions_of(paths, Path(temporary))
        for name, data in {"six views": MultiCrop(paths), "captions": captions, "table": table_of(paths)}.items():
            # It was: loader = torch.utils.data.DataLoader(data, 16, num_workers=2)
            loader = headrace.DataLoader(data, **common)
            batches = [describe(batch) for batch in loader]
            print(f"{name}: {len(batches)} batches, {batches[0]}")
            said = str(loader.stats()).splitlines()
            print(*(f"    {line}" for line in said if "them from records" in line or "from records," in line), sep="\n")
            loader.close()


if __name__ == "__main__":
    main()
