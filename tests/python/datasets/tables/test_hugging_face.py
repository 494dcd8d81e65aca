"""Hugging Face datasets as native sources: their own decoding to the bit, whatever was selected, and clear refusals."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import torch
from table_samples import FEATURES, SMALL, assert_decoded, hugging_face, turned

import datasets
import headrace
from headrace import DataLoader, from_hf
from headrace.datasets.tables.image_column import ImageColumn
from support import PHOTOS, assert_same, hard_files, pictures, silent_pillow, train


def label(row: dict[str, Any]) -> Any:
    return row["label"]


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    """A dataset in memory-mapped files of several record batches."""
    folder = tmp_path_factory.mktemp("mapped")
    hugging_face(60).save_to_disk(folder, num_shards=3, max_shard_size=None)
    made = datasets.load_from_disk(folder)
    assert made.cache_files and made.data.column("image").num_chunks > 1
    return made


SELECTIONS = {
    "all": lambda data: data,
    "slice": lambda data: data.select(range(7, 31)),
    "step": lambda data: data.select(range(1, 60, 4)),
    "twice": lambda data: data.select([5, 5, 59, 0]),
    "shuffled": lambda data: data.shuffle(seed=1, keep_in_memory=True),
    "split": lambda data: data.train_test_split(0.3, seed=2)["test"],
    "shard": lambda data: data.shard(4, 1, contiguous=False),
    "joined": lambda data: datasets.concatenate_datasets([data.select(range(40, 60)), hugging_face(5)]),
    "shuffled slice of joined": lambda data: (
        datasets.concatenate_datasets([data, hugging_face(9)])
        .shuffle(seed=3, keep_in_memory=True)
        .select(range(10, 40))
    ),
    "filtered": lambda data: data.filter(lambda label: label % 2 == 0, input_columns="label", keep_in_memory=True),
    "empty": lambda data: data.select([]),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selections_are_decoded_as_the_dataset_does(mapped: datasets.Dataset, selection: str) -> None:
    data = SELECTIONS[selection](mapped)
    assert_decoded(from_hf(data, transform=SMALL), data, label)


def test_nothing_is_copied_from_the_mapped_files(mapped: datasets.Dataset) -> None:
    column = from_hf(mapped, transform=SMALL).images
    assert isinstance(column, ImageColumn)
    of_the_table = {
        chunk.field("bytes").buffers()[2].address for chunk in mapped.data.column("image").chunks if len(chunk)
    }
    assert {buffer.address for buffer in column.buffers} == of_the_table


@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(mapped: datasets.Dataset, device: str | None) -> None:
    loader = DataLoader(from_hf(mapped, transform=train(32)), 8, True, seed=4, num_workers=2, device=device)
    report = loader.verify()  # raises where a batch differs
    assert loader.native and report.samples >= 30


def test_photographs(tmp_path: Path) -> None:
    """Real photographs, some with orientation and colour profiles; as bytes and as files."""
    paths = [str(path) for path in sorted(PHOTOS.glob("*.jpg"))[:6]]
    data = datasets.Dataset.from_dict({"image": paths}, features=datasets.Features({"image": datasets.Image()}))
    assert_decoded(from_hf(data, label=None, transform=SMALL), data)
    held = [{"bytes": Path(path).read_bytes(), "path": path} for path in paths]
    mixed = datasets.Dataset(
        pa.table(
            {
                "image": pa.array(
                    [held[0], {"bytes": None, "path": paths[1]}, *held[2:]], FEATURES.arrow_schema.field("image").type
                )
            }
        ),
        info=datasets.DatasetInfo(features=datasets.Features({"image": datasets.Image()})),
    ).select([1, 0, 5, 1])
    source = from_hf(mixed, label=None, transform=SMALL)
    assert_decoded(source, mixed)
    assert source.location(0).endswith(paths[1]) and source.read(1) == held[0]["bytes"]
    assert_decoded(pickle.loads(pickle.dumps(source)), mixed)


XMP = "<x:xmpmeta><rdf:Description tiff:Orientation{}/></x:xmpmeta>"


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_orientations_are_those_of_the_dataset(mode: str) -> None:
    files = [turned(orientation) for orientation in range(10)]
    files += [turned(0, XMP.format(f'="{n}"')) for n in (1, 6)] + [turned(0, XMP.format(">8<"))]
    files += [turned(1, XMP.format('="6"')), turned(6, XMP.format('="1"'))]
    files += [turned(orientation, format=format) for orientation in (1, 6) for format in ("PNG", "WEBP", "TIFF")]
    files += [longer_orientation(turned(3)), pictures()[5]]
    data = datasets.Dataset.from_dict(
        {"image": [{"bytes": one, "path": None} for one in files]},
        features=datasets.Features({"image": datasets.Image()}),
    )
    source = from_hf(data, label=None, transform=SMALL, mode=mode)
    assert_decoded(source, data, mode=mode)
    for number in range(len(files)):
        image = data[number]["image"]
        assert source.image_size(number) == (image.height, image.width)


def longer_orientation(file: bytes) -> bytes:
    """The EXIF orientation of a file as a LONG, which Pillow accepts."""
    at = file.index(b"\x01\x12\x00\x03" if b"MM\x00*" in file else b"\x12\x01\x03\x00")
    big = b"MM\x00*" in file
    order: Literal["big", "little"] = "big" if big else "little"
    entry = (0x112).to_bytes(2, order) + (4).to_bytes(2, order) + (1).to_bytes(4, order) + (3).to_bytes(4, order)
    return file[:at] + entry + file[at + 12 :]


@pytest.mark.parametrize("device", [None, "emulated"])
def test_random_crops_see_the_turned_image(device: str | None) -> None:
    files = [turned(orientation) for orientation in (6, 1, 8, 3)] * 3
    data = datasets.Dataset.from_dict(
        {"image": [{"bytes": one, "path": None} for one in files]},
        features=datasets.Features({"image": datasets.Image()}),
    )
    loader = DataLoader(from_hf(data, label=None, transform=train(24)), 4, True, seed=1, num_workers=2, device=device)
    assert loader.native
    assert_same(loader, list(loader.reference()))
    assert loader.stats().samples == len(files)


TYPES = {
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
}


@pytest.mark.parametrize("nested", [False, True], ids=["bytes", "struct"])
@pytest.mark.parametrize("kind", TYPES)
def test_kinds_of_binary(kind: str, nested: bool) -> None:
    from headrace.datasets.tables.image_column import ImageColumn

    values = [*pictures(9), b"short", b"", b"twelve bytes"]
    array = pa.array(values, TYPES[kind])
    parts = [array[:5], array[5:5], array[5:]]
    if nested:
        parts = [pa.StructArray.from_arrays([part], ["bytes"]) for part in parts]
        parts = [parts[0], parts[1], pa.concat_arrays([parts[0], parts[2]])[5:]]  # a chunk with an offset
    column = ImageColumn("image", pa.chunked_array(parts), np.array([11, 3, 0, 9, 10]), "")
    assert [bytes(column.bytes(i)) for i in range(5)] == [values[i] for i in (11, 3, 0, 9, 10)]
    assert len(column.table()) == 5


LABELS = {
    "float": [0.5 * i for i in range(24)],
    "text": [f"text {i}" for i in range(24)],
    "flag": [i % 3 == 0 for i in range(24)],
    "list": [[i, i + 1] for i in range(24)],
}


@pytest.mark.parametrize("name", [*LABELS, "label"])
def test_labels_are_the_values_of_the_column(name: str) -> None:
    data = hugging_face(24, **LABELS).shuffle(seed=1, keep_in_memory=True)
    source = from_hf(data, label=name, transform=SMALL)
    rows: Any = [(0, data[i][name]) for i in range(24)]
    expected: Any = torch.utils.data.DataLoader(rows, 5)
    assert_same((batch[1] for batch in DataLoader(source, 5, num_workers=1)), [batch[1] for batch in expected])
    assert source[3][1] == data[3][name]


def test_several_labels_are_dicts() -> None:
    data = hugging_face(24, **LABELS)
    source = from_hf(data, label=["label", "text"], transform=SMALL)
    wanted: Any = [{"label": row["label"], "text": row["text"]} for row in data]
    assert_same((batch[1] for batch in DataLoader(source, 7)), torch.utils.data.DataLoader(wanted, 7))
    doubled = from_hf(data, label="float", transform=SMALL, target_transform=lambda value: 2 * value)
    assert next(iter(DataLoader(doubled, 4)))[1].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_features_with_a_mode_and_without_decoding() -> None:
    data = hugging_face()
    undecoded = data.cast_column("image", datasets.Image(decode=False))
    assert_decoded(from_hf(undecoded, transform=SMALL), data, label)
    gray = data.cast_column("image", datasets.Image(mode="L"))
    assert_decoded(from_hf(gray, transform=SMALL, mode="L"), gray, label, mode="L")
    with pytest.raises(ValueError, match="mode 'L' before mode='RGB'; pass mode='L'"):
        from_hf(gray, transform=SMALL)


def with_images(rows: list[Any], kind: Any = None) -> datasets.Dataset:
    kind = FEATURES.arrow_schema.field("image").type if kind is None else kind
    return datasets.Dataset(pa.table({"image": pa.array(rows, kind)}))


REFUSED = {
    "null": (lambda: with_images([{"bytes": b"a", "path": None}, None, None]), ValueError, "row 1 and 1 other rows"),
    "neither": (
        lambda: with_images([{"bytes": None, "path": None}]),
        ValueError,
        r"row 0 of column 'image' has no image",
    ),
    "elsewhere": (
        lambda: with_images([{"bytes": None, "path": "https://a.b/c.jpg"}]),
        ValueError,
        "not a file of this",
    ),
    "list": (lambda: with_images([[b"a"]], pa.list_(pa.binary())), TypeError, "Make a row of each image"),
    "text": (lambda: with_images(["a"], pa.string()), TypeError, "holds no encoded images"),
    "numbers": (lambda: with_images([1], pa.int64()), TypeError, "holds no encoded images"),
    "other struct": (lambda: with_images([{"bytes": 3}], pa.struct({"bytes": pa.int32()})), TypeError, "no encoded"),
    "format": (lambda: hugging_face().with_format("torch"), ValueError, r"with_format\(None\)"),
    "transform": (lambda: hugging_face().with_transform(lambda rows: rows), ValueError, "set_transform"),
    "dict": (lambda: datasets.DatasetDict(train=hugging_face()), TypeError, r"pass one: dataset\['train'\]"),
    "stream": (lambda: hugging_face().to_iterable_dataset(), TypeError, "streaming"),
    "other class": (lambda: [1, 2], TypeError, "datasets.Dataset is needed, not builtins.list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    make, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        from_hf(make(), label=None)


def test_columns_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"image='picture' is no column; there are 'image', 'label'"):
        from_hf(hugging_face(), image="picture")
    with pytest.raises(ValueError, match=r"label='class' is no column.*label=None"):
        from_hf(hugging_face(), label="class")
    with pytest.raises(TypeError, match="label must be the name of a column, not 3"):
        from_hf(hugging_face(), label=["label", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="there are no labels"):
        from_hf(hugging_face(), label=None, target_transform=str)


def test_a_broken_image_is_named() -> None:
    data = with_images([{"bytes": pictures()[0], "path": None}, {"bytes": b"no image", "path": "x/odd.jpg"}])
    with pytest.raises(headrace.SampleError, match=r"row 1 of column 'image', x/odd.jpg"):
        list(DataLoader(from_hf(data, label=None, transform=SMALL), 2))


def test_state_and_pickle(mapped: datasets.Dataset) -> None:
    source = from_hf(mapped.shuffle(seed=1, keep_in_memory=True), transform=train(16))
    loader = DataLoader(source, 8, True, seed=2, num_workers=2)
    batches = list(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    first = [next(iterator) for _ in range(3)]
    state = loader.state_dict()
    again = DataLoader(pickle.loads(pickle.dumps(source)), 8, True, seed=2, num_workers=1)
    again.load_state_dict(state)
    assert_same([*first, *again], batches)
    other = DataLoader(from_hf(mapped, transform=train(16)), 8, True, seed=2)
    with pytest.raises(ValueError, match="dataset"):
        other.load_state_dict(state)


def test_hard_files_as_the_dataset_decodes_them(hard_dev: Path) -> None:
    """Odd files are decoded as by the dataset, and fail where it fails."""
    files = [path for path in sorted(hard_files(hard_dev)) if path.stat().st_size < 12_000]
    data = with_images([{"bytes": path.read_bytes(), "path": path.name} for path in files])
    data = data.cast_column("image", datasets.Image())
    good: dict[int, torch.Tensor] = {}
    bad = []
    with silent_pillow():
        for number in range(len(files)):
            try:
                good[number] = SMALL(data[number]["image"].convert("RGB"))
            except Exception:
                bad.append(number)
        images = DataLoader(from_hf(data.select(list(good)), label=None, transform=SMALL), 16, num_workers=2)
        made = [image for batch in images for image in batch]
        for number, image in zip(good, made, strict=True):
            assert torch.equal(image, good[number]), files[number].name
        source = from_hf(data.select(bad), label=None, transform=SMALL)
        broken = DataLoader(source, 16, on_error="skip", max_errors=None, num_workers=2)
        assert images.native and broken.native
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that samples were skipped
            assert sum(len(batch) for batch in broken) == 0
        assert len(broken.errors) == len(bad)
    assert len(good) > 100 and len(bad) > 20
