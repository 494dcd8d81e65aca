"""Streams of images, tar files, and rows of a table of Hugging Face."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torchvision import transforms as T

from pipelines.material import Material
from pipelines.own import TRAIN
from pipelines.registry import pipeline


@pipeline()
def stream_in_shards(material: Material) -> dict[str, Any]:
    """Each worker opens its part of the files."""

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            info = get_worker_info()
            number, count = (info.id, info.num_workers) if info else (0, 1)
            paths = material.photos[number::count]
            random.shuffle(paths)
            for path in paths:
                yield TRAIN(Image.open(path).convert("RGB")), path.name, number

    return {"dataset": Stream(), "batch_size": 4}


@pipeline()
def stream_with_a_length(material: Material) -> dict[str, Any]:
    class Stream(IterableDataset[Any]):
        def __len__(self) -> int:
            return len(material.photos)

        def __iter__(self) -> Iterator[Any]:
            info = get_worker_info()
            for path in material.photos[info.id if info else 0 :: info.num_workers if info else 1]:
                with Image.open(path) as image:
                    yield {"image": T.functional.to_tensor(image.resize((30, 20))), "draw": torch.rand(())}

    return {"dataset": Stream(), "batch_size": 5, "drop_last": True}


def samples_of(path: Any) -> Iterator[dict[str, bytes]]:
    """Groups the members of a tar file by their keys."""
    sample: dict[str, bytes] = {}
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            key, _, suffix = member.name.partition(".")
            if sample and sample["key"] != key.encode():
                yield sample
                sample = {}
            stream = archive.extractfile(member)
            assert stream is not None
            sample["key"], sample[suffix] = key.encode(), stream.read()
    if sample:
        yield sample


def shuffled(samples: Iterator[Any], held: int) -> Iterator[Any]:
    """Shuffles a stream through a buffer."""
    buffer: list[Any] = []
    for sample in samples:
        buffer.append(sample)
        if len(buffer) == held:
            yield buffer.pop(random.randrange(held))
    random.shuffle(buffer)
    yield from buffer


@pipeline()
def tar_shards(material: Material) -> dict[str, Any]:
    class Shards(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            info = get_worker_info()
            mine = material.shards[info.id if info else 0 :: info.num_workers if info else 1]
            for sample in shuffled((one for shard in mine for one in samples_of(shard)), 5):
                with io.BytesIO(sample["jpg"]) as stream:
                    image: Image.Image = Image.open(stream)
                    image.load()
                    image = image.convert("RGB")
                yield TRAIN(image), int(sample["cls"]), json.loads(sample["json"]), sample["key"].decode()

    return {"dataset": Shards(), "batch_size": 3}


@pipeline(opens=False)
def images_of_open_tar_members(material: Material) -> dict[str, Any]:
    """Pillow reads from the archive itself, at random places."""

    class Members(Dataset[Any]):
        def __init__(self) -> None:
            self.archive: Any = None
            with tarfile.open(material.shards[0]) as archive:
                self.names = [member.name for member in archive if member.name.endswith(".jpg")]

        def __len__(self) -> int:
            return len(self.names)

        def __getitem__(self, index: int) -> Any:
            if self.archive is None:
                self.archive = tarfile.open(material.shards[0])  # noqa: SIM115 - kept open
            return TRAIN(Image.open(self.archive.extractfile(self.names[index])).convert("RGB")), self.names[index]

        def __del__(self) -> None:
            if self.archive is not None:
                self.archive.close()

    return {"dataset": Members(), "batch_size": 2, "shuffle": True}


@pipeline(needs="webdataset")
def webdataset_shards(material: Material) -> dict[str, Any]:
    import webdataset

    urls = [str(path) for path in material.shards]
    stream = webdataset.WebDataset(urls, shardshuffle=False, workersplitter=webdataset.split_by_worker)
    dataset = stream.shuffle(5, seed=3).decode("pil").to_tuple("jpg", "cls", "__key__").map_tuple(TRAIN, int, str)
    return {"dataset": dataset.batched(3), "batch_size": None}


def rows_of(material: Material) -> list[dict[str, Any]]:
    return [
        {"image": {"bytes": path.read_bytes(), "path": None}, "label": index % 3}
        for index, path in enumerate(material.photos)
    ]


@pipeline()
def rows_with_a_transform(material: Material) -> dict[str, Any]:
    """As of a dataset of Hugging Face with `with_transform`: rows of bytes, a transform of a batch of rows."""
    rows = rows_of(material)

    def decoded(row: dict[str, Any]) -> Any:
        image = Image.open(io.BytesIO(row["image"]["bytes"]))
        image.load()
        if image.getexif().get(0x0112) is not None:
            raise AssertionError("no photograph is turned")
        return image

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        batch["pixel_values"] = [TRAIN(image.convert("RGB")) for image in batch["image"]]
        del batch["image"]
        return batch

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> Any:
            return {key: value[0] for key, value in self._batch([index]).items()}

        def __getitems__(self, indices: list[int]) -> Any:
            batch = self._batch(indices)
            return [{key: value[place] for key, value in batch.items()} for place in range(len(indices))]

        def _batch(self, indices: list[int]) -> Any:
            batch = {"image": [decoded(rows[k]) for k in indices], "label": [rows[k]["label"] for k in indices]}
            return transform(batch)

    def collate(batch: list[Any]) -> dict[str, torch.Tensor]:
        stacked = torch.stack([sample["pixel_values"] for sample in batch])
        return {
            "pixel_values": stacked.to(memory_format=torch.contiguous_format).float(),
            "labels": torch.tensor([sample["label"] for sample in batch]),
        }

    return {"dataset": Rows(), "batch_size": 4, "shuffle": True, "collate_fn": collate}


@pipeline(needs="datasets")
def hugging_face_table(material: Material) -> dict[str, Any]:
    import datasets

    rows = rows_of(material)
    columns = {"image": [row["image"] for row in rows], "label": [row["label"] for row in rows]}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"pixel_values": [TRAIN(image.convert("RGB")) for image in batch["image"]], "label": batch["label"]}

    table = datasets.Dataset.from_dict(columns, features=features).with_transform(transform)
    return {"dataset": table, "batch_size": 4, "shuffle": True}


@pipeline(needs="transformers.models.vit.image_processing_pil_vit")
def processor_in_the_collate_fn(material: Material) -> dict[str, Any]:
    """Pillow's images go through the loader to a processor of transformers."""
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = ViTImageProcessorPil(size={"height": 32, "width": 32})
    rows = rows_of(material)

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> Any:
            return Image.open(io.BytesIO(rows[index]["image"]["bytes"])), rows[index]["label"]

    def collate(batch: list[Any]) -> Any:
        made = processor([image for image, _ in batch], return_tensors="pt")
        return {"pixel_values": made["pixel_values"], "labels": torch.tensor([label for _, label in batch])}

    return {"dataset": Rows(), "batch_size": 4, "shuffle": True, "collate_fn": collate}


@pipeline()
def video_frames_from_a_folder(material: Material) -> dict[str, Any]:
    """Clips of four frames with the same crop."""

    class Clips(Dataset[Any]):
        def __len__(self) -> int:
            return len(material.photos) - 3

        def __getitem__(self, index: int) -> Any:
            frames = [Image.open(path) for path in material.photos[index : index + 4]]
            box = T.RandomResizedCrop.get_params(frames[0].resize((100, 80)), [0.2, 1.0], [0.75, 1.33])
            clip = [T.functional.resized_crop(frame.resize((100, 80)), *box, [32, 32]) for frame in frames]
            return torch.from_numpy(np.stack([np.asarray(frame) for frame in clip])).permute(3, 0, 1, 2)

    return {"dataset": Clips(), "batch_size": 3, "shuffle": True}
