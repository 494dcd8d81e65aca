"""The forms in which the benchmark keeps the same images: how each is written, and who reads it."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from bench.contenders._common import import_torchvision

BATCH, CLASSES, SHARD = 64, 10, 128  # SHARD: samples of a shard

Paths = list[Path]


@dataclass(frozen=True)
class Store:
    """A form of storage.

    Attributes:
        write: writes files with their labels into an empty folder.
        ours: headrace's dataset of what was written, with a transform.
        theirs: the format's own dataset, in torch's loader with as many workers; None if it has none. The call
            raises ImportError where the library is not installed.
    """

    write: Callable[[Paths, Path], None]
    ours: Callable[[Path, Any], Any]
    theirs: Callable[[Path, Any, int], Iterable[Any]] | None = None


def label(index: int) -> int:
    return index % CLASSES


def _torch(dataset: Any, workers: int, **options: Any) -> Iterable[Any]:
    return TorchDataLoader(dataset, BATCH, num_workers=workers, drop_last=True, persistent_workers=True, **options)


class Files(Dataset[Any]):
    """Files as torch's loader reads them."""

    def __init__(self, paths: Paths, transform: Any) -> None:
        self.paths, self.transform = paths, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            return self.transform(image.convert("RGB")), label(index)


def _write_tar(paths: Paths, folder: Path) -> None:
    for first in range(0, len(paths), SHARD):
        with tarfile.open(folder / f"shard-{first // SHARD:05}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for index in range(first, min(first + SHARD, len(paths))):
                for extension, data in (("jpg", paths[index].read_bytes()), ("cls", b"%d" % label(index))):
                    member = tarfile.TarInfo(f"{index:07}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))


def _webdataset(folder: Path, transform: Any, workers: int) -> Iterable[Any]:
    import webdataset

    shards = sorted(map(str, folder.glob("*.tar")))
    samples = webdataset.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000).decode("pil")
    batches = samples.to_tuple("jpg", "cls").map_tuple(transform).batched(BATCH, partial=False)
    return TorchDataLoader(batches, None, num_workers=workers, persistent_workers=True)


def _rows(paths: Paths) -> dict[str, list[Any]]:
    images = [{"bytes": path.read_bytes(), "path": None} for path in paths]
    return {"image": images, "label": [label(index) for index in range(len(paths))]}


def _table(paths: Paths) -> Any:
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return datasets.Dataset.from_dict(_rows(paths), features)


def _write_hugging_face(paths: Paths, folder: Path) -> None:
    _table(paths).save_to_disk(str(folder / "saved"))


def _opened(folder: Path) -> Any:
    import datasets

    return datasets.load_from_disk(str(folder / "saved"))


def _hugging_face(folder: Path, transform: Any, workers: int) -> Iterable[Any]:
    def apply(rows: dict[str, Any]) -> dict[str, Any]:
        rows["image"] = [transform(image.convert("RGB")) for image in rows["image"]]
        return rows

    return _torch(_opened(folder).with_transform(apply), workers, shuffle=True)


def _write_parquet(paths: Paths, folder: Path) -> None:
    _table(paths).to_parquet(folder / "rows.parquet")


def _write_zip(paths: Paths, folder: Path) -> None:
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_STORED) as archive:
        for index, path in enumerate(paths):
            archive.write(path, f"class_{label(index)}/{index:07}.jpg")


def _write_mds(paths: Paths, folder: Path) -> None:
    import_torchvision()  # streaming imports it
    from streaming import MDSWriter

    with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}, size_limit=1 << 24) as out:
        for index, path in enumerate(paths):
            out.write({"image": path.read_bytes(), "label": label(index)})


def _streaming(folder: Path, transform: Any, workers: int) -> Iterable[Any]:
    from streaming import StreamingDataset

    class Fields(StreamingDataset):
        def __getitem__(self, index: int) -> Any:
            row = super().__getitem__(index)
            with Image.open(io.BytesIO(row["image"])) as image:
                return transform(image.convert("RGB")), int(row["label"])

    return _torch(Fields(local=str(folder), shuffle=True, batch_size=BATCH), workers)


def _write_litdata(paths: Paths, folder: Path) -> None:
    """Writes JPEG files for headrace, and bytes, which litdata reads without torchvision's native decoder."""
    import_torchvision()
    from litdata.streaming.writer import BinaryWriter

    for name in ("images", "bytes"):
        writer = BinaryWriter(str(folder / name), chunk_size=SHARD)
        for index, path in enumerate(paths):
            with Image.open(path) as image:  # litdata copies its file
                writer.add_item(
                    index, {"image": image if name == "images" else path.read_bytes(), "label": label(index)}
                )
        writer.done()
        writer.merge()


def _litdata(folder: Path, transform: Any, workers: int) -> Iterable[Any]:
    from litdata import StreamingDataLoader, StreamingDataset

    class Fields(StreamingDataset):
        def __getitem__(self, index: Any) -> Any:
            row = super().__getitem__(index)
            with Image.open(io.BytesIO(row["image"])) as image:
                return transform(image.convert("RGB")), int(row["label"])

    dataset = Fields(str(folder / "bytes"), shuffle=True, drop_last=True)
    loader: Iterable[Any] = StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=workers, drop_last=True, persistent_workers=True
    )
    return loader


STORES = {
    "tar": Store(_write_tar, lambda folder, t: headrace.TarShards(str(folder / "*.tar"), transform=t), _webdataset),
    "Hugging Face": Store(
        _write_hugging_face, lambda folder, t: headrace.from_hf(_opened(folder), transform=t), _hugging_face
    ),
    "Parquet": Store(
        _write_parquet, lambda folder, t: headrace.Parquet(folder / "rows.parquet", transform=t, cache=folder)
    ),
    "zip": Store(_write_zip, lambda folder, t: headrace.Zip(folder / "images.zip", transform=t)),
    "MDS": Store(_write_mds, lambda folder, t: headrace.MDS(folder, "image", "label", t), _streaming),
    "litdata": Store(
        _write_litdata, lambda folder, t: headrace.LitData(folder / "images", "image", "label", t), _litdata
    ),
}
