"""Small datasets of every kind that the native path reads, and changes of them that a program makes while it trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import ConcatDataset, StackDataset, Subset

from headrace import Columns, EncodedImages, Fields, ImageArray, ImageFiles
from headrace import transforms as T
from support import TENSOR, pictures
from torchvision_shim import import_torchvision

COUNT = 8
SMALL = T.Compose([T.Resize((6, 5)), *TENSOR])
GRAY = T.Compose([T.Resize((6, 5)), T.ToTensor()])


class Changed(NamedTuple):
    """How to make a dataset, and how a program changes it.

    Attributes:
        seen_live: whether threads see the change while an epoch is under way, as torch's workers do not: the pixels of
            an array are read where they are.
    """

    make: Callable[[Path], Any]
    change: Callable[[Any], None]
    seen_live: bool = False


def files(root: Path, count: int = COUNT) -> list[str]:
    paths = []
    for i, data in enumerate(pictures(count)):
        paths.append(str(root / f"{i:02}.jpg"))
        Path(paths[-1]).write_bytes(data)
    return paths


def _made(module: str, name: str, **attributes: Any) -> Any:
    """A dataset of torchvision, made without its constructor, which would load files."""
    datasets = import_torchvision().datasets
    kind = getattr(getattr(datasets, module), name)
    made = kind.__new__(kind)
    datasets.VisionDataset.__init__(made, "", **{"transform": SMALL} | attributes.pop("options", {}))
    vars(made).update(attributes)
    return made


def folder(root: Path, labels: Any = None, pair: Any = tuple, **options: Any) -> Any:
    labels = [i % 3 for i in range(COUNT)] if labels is None else labels
    samples = [pair(one) for one in zip(files(root), labels, strict=True)]
    loader = import_torchvision().datasets.folder.default_loader
    return _made("folder", "ImageFolder", samples=samples, imgs=samples, loader=loader, options=options)


def cifar(root: Path, labels: Any = None) -> Any:
    data = np.random.default_rng(1).integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)
    return _made("cifar", "CIFAR10", data=data, targets=[i % 3 for i in range(COUNT)] if labels is None else labels)


def mnist(root: Path, labels: Any = None) -> Any:
    data = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (COUNT, 8, 8), dtype=np.uint8))
    labels = torch.arange(COUNT) if labels is None else labels
    return _made("mnist", "MNIST", data=data, targets=labels, options={"transform": GRAY})


def flowers(root: Path) -> Any:
    loader = import_torchvision().datasets.folder.default_loader
    paths = [Path(one) for one in files(root)]
    return _made("flowers102", "Flowers102", _image_files=paths, _labels=[*range(COUNT)], loader=loader)


def pets(root: Path) -> Any:
    lists = {"_images": [Path(one) for one in files(root)], "_labels": [*range(COUNT)], "_bin_labels": [0] * COUNT}
    return _made("oxford_iiit_pet", "OxfordIIITPet", _target_types=["category"], **lists)


def arrays(root: Path, labels: Any = None) -> ImageArray:
    data = np.random.default_rng(2).integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)
    return ImageArray(data, np.arange(COUNT) if labels is None else labels, SMALL)


def blobs(root: Path, labels: Any = None) -> EncodedImages:
    return EncodedImages(pictures(COUNT), [f"name {i}" for i in range(COUNT)] if labels is None else labels, SMALL)


def columns(root: Path) -> Columns:
    return Columns({"x": np.arange(COUNT * 2.0).reshape(COUNT, 2), "y": torch.arange(COUNT)})


def samples(root: Path) -> Fields:
    return Fields({"image": folder(root), "word": [f"w{i}" for i in range(COUNT)], "x": np.arange(COUNT)})


def stack(root: Path) -> StackDataset[Any]:
    plain: dict[str, Any] = {"word": [*range(COUNT)], "x": torch.arange(COUNT)}
    return StackDataset(image=folder(root), **plain)


def subset(root: Path, indices: Any = None) -> Subset[Any]:
    return Subset(folder(root), [1, 5, 2, 6] if indices is None else indices)


def concat(root: Path) -> ConcatDataset[Any]:
    return ConcatDataset([folder(root), cifar(root)])


def nested(root: Path) -> Subset[Any]:
    return Subset(ConcatDataset([subset(root), cifar(root)]), [3, 1, 7, 0, 11, 5])


def put(values: Any, at: Any, value: Any) -> None:
    values[at] = value


def relabel(data: Any) -> None:
    data.samples[1] = (data.samples[1][0], 9)


def poison(data: Any) -> None:
    data.data[1] = 255
    data.targets[1] = 7


def grow(data: Any) -> None:
    data.samples.extend(data.samples[:3])


def shrink(data: Any) -> None:
    del data.samples[5:]


def grow_arrays(data: Any) -> None:
    data.data = np.concatenate([data.data, data.data[:3] // 2])
    data.targets = [*data.targets, 5, 5, 5]


def exchange_paths(data: Any) -> None:
    data.samples[0], data.samples[3] = data.samples[3], data.samples[0]


def again(data: Any) -> None:
    data.datasets.append(data.datasets[0])
    data.cumulative_sizes = data.cumsum(data.datasets)


INT32 = np.arange(COUNT, dtype=np.int32)
CHANGES: dict[str, Changed] = {
    "folder: label in place": Changed(folder, relabel),
    "folder: labels replaced": Changed(folder, lambda d: setattr(d, "samples", [(p, 8 - y) for p, y in d.samples])),
    "folder: labels of equal value": Changed(
        folder, lambda d: setattr(d, "samples", [(p, y * 1.0) for p, y in d.samples])
    ),
    "folder: label of equal value": Changed(folder, lambda d: put(d.samples, 0, (d.samples[0][0], False))),
    "folder: files exchanged": Changed(folder, exchange_paths),
    "folder: reversed": Changed(folder, lambda d: d.samples.reverse()),
    "folder: grows": Changed(folder, grow),
    "folder: replaced by more": Changed(folder, lambda d: setattr(d, "samples", d.samples * 2)),
    "folder: shrinks": Changed(folder, shrink),
    "folder: targets and imgs, which are not read": Changed(folder, lambda d: vars(d).update(imgs=[], targets=[1])),
    "folder: a pair of a list": Changed(lambda r: folder(r, pair=list), lambda d: put(d.samples[2], 1, 9)),
    "folder: pairs become lists": Changed(folder, lambda d: setattr(d, "samples", [list(one) for one in d.samples])),
    "folder: int32": Changed(lambda r: folder(r, INT32), relabel),
    "folder: strings": Changed(
        lambda r: folder(r, list("abcdefgh")), lambda d: put(d.samples, 0, (d.samples[0][0], "z"))
    ),
    "folder: tensors": Changed(
        lambda r: folder(r, list(torch.arange(COUNT))), lambda d: put(d.samples, 0, (d.samples[0][0], torch.tensor(9)))
    ),
    "folder: a tensor in place": Changed(
        lambda r: folder(r, list(torch.arange(COUNT))), lambda d: d.samples[0][1].fill_(9), seen_live=True
    ),
    "folder: a tuple of samples": Changed(folder, lambda d: setattr(d, "samples", tuple(d.samples))),
    "folder: a sample of three": Changed(folder, lambda d: put(d.samples, 7, (*d.samples[7], 1))),
    "folder: a path that is none": Changed(folder, lambda d: put(d.samples, 7, (None, 1))),
    "folder: target_transform": Changed(folder, lambda d: setattr(d, "target_transform", lambda y: y / 2)),
    "folder: transform": Changed(folder, lambda d: setattr(d, "transform", T.Compose([T.Resize((4, 4)), *TENSOR]))),
    "folder: loader": Changed(folder, lambda d: setattr(d, "loader", lambda path: folder_loader(path).rotate(90))),
    "folder: __getitems__ of the instance": Changed(folder, lambda d: setattr(d, "__getitems__", one_by_one(d))),
    "cifar: pixels and label in place": Changed(cifar, poison, seen_live=True),
    "cifar: label in place": Changed(cifar, lambda d: put(d.targets, 1, 7)),
    "cifar: label array in place": Changed(lambda r: cifar(r, np.arange(COUNT)), lambda d: put(d.targets, 1, 70)),
    "cifar: label array of int16": Changed(lambda r: cifar(r, INT32.astype(np.int16)), lambda d: put(d.targets, 1, 70)),
    "cifar: labels replaced": Changed(cifar, lambda d: setattr(d, "targets", [3] * COUNT)),
    "cifar: labels become floats": Changed(cifar, lambda d: setattr(d, "targets", [float(y) for y in d.targets])),
    "cifar: labels become a tensor": Changed(cifar, lambda d: setattr(d, "targets", torch.arange(COUNT))),
    "cifar: pixels replaced": Changed(cifar, lambda d: setattr(d, "data", d.data[::-1].copy())),
    "cifar: grows": Changed(cifar, grow_arrays),
    "cifar: pixels grow alone": Changed(cifar, lambda d: setattr(d, "data", np.concatenate([d.data, d.data]))),
    "cifar: labels grow alone": Changed(cifar, lambda d: d.targets.append(4)),
    "cifar: labels shrink alone": Changed(cifar, lambda d: d.targets.pop()),
    "cifar: pixels become floats": Changed(cifar, lambda d: setattr(d, "data", d.data / 255)),
    "cifar: lists of labels in place": Changed(
        lambda r: cifar(r, [[i, 1] for i in range(COUNT)]), lambda d: put(d.targets[0], 1, 7), seen_live=True
    ),
    "mnist: labels in place": Changed(mnist, lambda d: put(d.targets, 1, 7)),
    "mnist: labels become floats": Changed(mnist, lambda d: setattr(d, "targets", d.targets + 0.75)),
    "mnist: labels become a list": Changed(mnist, lambda d: setattr(d, "targets", [True] * COUNT)),
    "mnist: pixels in place": Changed(mnist, lambda d: d.data[1].fill_(255), seen_live=True),
    "mnist: pixels exchanged in the tensor": Changed(mnist, lambda d: setattr(d.data, "data", d.data.flip(0))),
    "flowers: label in place": Changed(flowers, lambda d: put(d._labels, 0, 50)),
    "flowers: file in place": Changed(flowers, lambda d: put(d._image_files, 0, d._image_files[5])),
    "pets: label in place": Changed(pets, lambda d: put(d._labels, 0, 50)),
    "pets: other target": Changed(pets, lambda d: setattr(d, "_target_types", ["binary-category"])),
    "Arrays: labels in place": Changed(arrays, lambda d: put(d._labels, 0, 50)),
    "Arrays: pixels in place": Changed(arrays, lambda d: put(d.images, 0, 255), seen_live=True),
    "EncodedImages: labels in place": Changed(
        lambda r: blobs(r, [f"n{i}" for i in range(COUNT)]), lambda d: put(d._labels, 0, "z")
    ),
    "EncodedImages: label tensor in place": Changed(
        lambda r: blobs(r, torch.arange(COUNT)), lambda d: put(d._labels, 0, 50)
    ),
    "EncodedImages: a blob replaced": Changed(blobs, lambda d: put(d.blobs, 0, d.blobs[5])),
    "EncodedImages: grows": Changed(
        lambda r: EncodedImages(pictures(COUNT), None, SMALL), lambda d: d.blobs.extend(d.blobs[:2])
    ),
    "EncodedImages: target_transform": Changed(blobs, lambda d: setattr(d, "target_transform", len)),
    "EncodedImages: __getitems__ of the instance": Changed(blobs, lambda d: setattr(d, "__getitems__", one_by_one(d))),
    "ImageFiles: labels in place": Changed(
        lambda r: ImageFiles(files(r), np.arange(COUNT), SMALL), lambda d: put(d._labels, 0, 50)
    ),
    "Columns: values in place": Changed(columns, lambda d: put(d.columns["y"], 0, 50), seen_live=True),
    "Subset of columns: index in place": Changed(
        lambda r: Subset(columns(r), [1, 2, 5]), lambda d: put(d.indices, 0, 7)
    ),
    "Subset of columns: grows": Changed(lambda r: Subset(columns(r), [1, 2, 5]), lambda d: d.indices.append(7)),
    "Concat of columns: grows": Changed(lambda r: ConcatDataset([columns(r), columns(r)]), again),
    "Samples: label of a field": Changed(samples, lambda d: relabel(d.fields["image"])),
    "Samples: word in place": Changed(samples, lambda d: put(d.fields["word"], 0, "new")),
    "Samples: array in place": Changed(samples, lambda d: put(d.fields["x"], 0, 50), seen_live=True),
    "Samples: fields grow unequally": Changed(samples, lambda d: d.fields["word"].append("more")),
    "Stack: label of a field": Changed(stack, lambda d: relabel(d.datasets["image"])),
    "Stack: number in place": Changed(stack, lambda d: put(d.datasets["word"], 0, 50)),
    "Stack: number of equal value": Changed(stack, lambda d: put(d.datasets["word"], 0, 0.0)),
    "Stack: a field replaced": Changed(stack, lambda d: put(d.datasets, "x", torch.arange(COUNT) * 3)),
    "Stack: a field removed": Changed(stack, lambda d: d.datasets.pop("image") and None),
    "Stack: a tensor's memory exchanged": Changed(stack, lambda d: d.datasets["x"].set_(torch.arange(COUNT) * 2)),
    "Subset: index in place": Changed(subset, lambda d: put(d.indices, 0, 7)),
    "Subset: grows": Changed(subset, lambda d: d.indices.append(7)),
    "Subset: grows in place by another": Changed(subset, lambda d: d.indices.extend([0, 3])),
    "Subset: shrinks": Changed(subset, lambda d: d.indices.pop()),
    "Subset: array in place": Changed(lambda r: subset(r, np.array([1, 5, 2])), lambda d: put(d.indices, 0, 7)),
    "Subset: tensor in place": Changed(lambda r: subset(r, torch.tensor([1, 5, 2])), lambda d: put(d.indices, 0, 7)),
    "Subset: a range replaced": Changed(lambda r: subset(r, range(4)), lambda d: setattr(d, "indices", range(2, 7))),
    "Subset: an index out of range": Changed(subset, lambda d: d.indices.append(99)),
    "Subset: an index of True": Changed(subset, lambda d: put(d.indices, 1, True)),
    "Subset: another dataset": Changed(
        subset, lambda d: setattr(d, "dataset", EncodedImages(pictures(COUNT), [3.5] * COUNT, SMALL))
    ),
    "Subset: label inside": Changed(subset, lambda d: relabel(d.dataset)),
    "Subset: __getitems__ of the instance": Changed(subset, lambda d: setattr(d, "__getitems__", one_by_one(d))),
    "Concat: label inside": Changed(concat, lambda d: relabel(d.datasets[0])),
    "Concat: a part grows": Changed(concat, lambda d: grow(d.datasets[0])),
    "Concat: a part shrinks": Changed(concat, lambda d: shrink(d.datasets[0])),
    "Concat: grows": Changed(concat, again),
    "Concat: appended without sizes": Changed(concat, lambda d: d.datasets.append(d.datasets[0])),
    "Concat: parts exchanged": Changed(concat, lambda d: d.datasets.reverse()),
    "nested: label inside": Changed(nested, lambda d: relabel(d.dataset.datasets[0].dataset)),
    "nested: index inside": Changed(nested, lambda d: put(d.dataset.datasets[0].indices, 1, 7)),
    "nested: index": Changed(nested, lambda d: put(d.indices, 1, 10)),
    "nested: pixels": Changed(nested, lambda d: poison(d.dataset.datasets[1]), seen_live=True),
}


def folder_loader(path: str) -> Any:
    return import_torchvision().datasets.folder.pil_loader(path)


def one_by_one(data: Any) -> Callable[[list[int]], list[Any]]:
    """A ``__getitems__`` that reverses a batch."""
    return lambda indices: [data[i] for i in reversed(indices)]


def short(value: Any) -> Any:
    """Batches as an error message shows them: the means of images."""
    if isinstance(value, torch.Tensor):
        if value.ndim == 1:
            return value.tolist()
        return round(float(value.double().mean()), 4)
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    return [short(one) for one in value] if isinstance(value, (list, tuple)) else value
