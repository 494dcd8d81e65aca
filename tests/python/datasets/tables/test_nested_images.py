"""Images inside structs and lists, and in zip archives, of Hugging Face's datasets: their own decoding to the bit."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from table_samples import SMALL, turned

import datasets
from headrace import DataLoader, Fields, from_hf
from support import PHOTOS, assert_same, pictures

IMAGE = datasets.Image()
COUNT = 12


def encoded(i: int) -> dict[str, Any]:
    return {"bytes": turned(6) if i % 5 == 4 else pictures(COUNT)[i], "path": f"{i}.jpg"}


def nested() -> datasets.Dataset:
    features = datasets.Features(
        {
            "photo": {"image": IMAGE, "label": datasets.Value("int64"), "note": datasets.Value("string")},
            "images": datasets.List(IMAGE),
            "pair": datasets.List(IMAGE, length=2),
            "objects": datasets.List({"crop": IMAGE, "name": datasets.Value("string")}),
            "label": datasets.Value("int64"),
        }
    )
    rows: dict[str, list[Any]] = {name: [] for name in features}
    for i in range(COUNT):
        some = [encoded((i + k) % COUNT) for k in range(1 + i % 3)]
        rows["photo"].append({"image": encoded(i), "label": i * 2, "note": f"note {i}"})
        rows["images"].append(some)
        rows["pair"].append([encoded(i), encoded((i + 5) % COUNT)])
        rows["objects"].append([{"crop": one, "name": "x"} for one in some])
        rows["label"].append(i)
    return datasets.Dataset.from_dict(rows, features=features)


PLACES: dict[str, Any] = {
    "photo.image": lambda row: row["photo"]["image"],
    "images.0": lambda row: row["images"][0],
    "pair.1": lambda row: row["pair"][1],
    "objects.0.crop": lambda row: row["objects"][0]["crop"],
}
SELECTIONS: dict[str, Any] = {
    "all": lambda data: data,
    "slice": lambda data: data.select(range(3, 9)),
    "shuffled": lambda data: data.shuffle(seed=1, keep_in_memory=True),
    "joined": lambda data: datasets.concatenate_datasets([data.select(range(7, 12)), data.select([3, 1])]),
}


@pytest.fixture(scope="module", params=[False, True], ids=["memory", "mapped"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    made = nested()
    if not request.param:
        return made
    folder = tmp_path_factory.mktemp("nested")
    made.save_to_disk(folder, num_shards=2, max_shard_size=None)
    return datasets.load_from_disk(folder)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("place", PLACES)
def test_they_are_what_the_dataset_decodes(data: datasets.Dataset, place: str, selection: str) -> None:
    chosen = SELECTIONS[selection](data)
    source = from_hf(chosen, image=place, label=["label", "photo.note", "photo.label"], transform=SMALL)
    for one in (source, pickle.loads(pickle.dumps(source))):
        loader = DataLoader(one, 5, num_workers=2)
        assert loader.native, loader.explain()
        images = [image for batch, _ in loader for image in batch]
        labels = [labels for _, labels in loader]
        assert len(images) == len(chosen)
        for number, image in enumerate(images):
            assert torch.equal(image, SMALL(PLACES[place](chosen[number]).convert("RGB"))), number
        assert [v for some in labels for v in some["label"].tolist()] == chosen["label"][:]
        assert [v for some in labels for v in some["photo.note"]] == [row["note"] for row in chosen["photo"][:]]
    loader = DataLoader(from_hf(chosen, image=place, label="photo.label", transform=SMALL), len(chosen))
    assert next(iter(loader))[1].tolist() == [row["label"] for row in chosen["photo"][:]]


def test_nothing_is_copied() -> None:
    data = nested()
    column: Any = from_hf(data, image="objects.0.crop").images
    chunk = data.data.column("objects").chunks[0]
    values = chunk.values.field("crop").field("bytes")
    assert {buffer.address for buffer in column.buffers} == {values.buffers()[2].address}


def test_several_images_a_sample() -> None:
    data = nested()
    fields = {name: from_hf(data, image=f"pair.{i}", label=None, transform=SMALL) for i, name in enumerate("ab")}
    loader = DataLoader(Fields(fields), 4, num_workers=1)
    assert loader.native, loader.explain()
    for number, sample in enumerate(one for batch in loader for one in zip(batch["a"], batch["b"], strict=True)):
        for made, theirs in zip(sample, data[number]["pair"], strict=True):
            assert torch.equal(made, SMALL(theirs.convert("RGB")))


def test_a_column_of_the_whole_name_comes_first() -> None:
    flat = nested().flatten()
    assert "photo.image" in flat.column_names
    expected = from_hf(nested(), image="photo.image", label="photo.label", transform=SMALL)
    found = from_hf(flat, image="photo.image", label="photo.label", transform=SMALL)
    assert_same(DataLoader(found, 4), list(DataLoader(expected, 4)))


def test_what_is_not_there() -> None:
    data = nested()
    with pytest.raises(ValueError, match=r"row 0 and 3 other rows have no element 1 in the list of column 'images.1'"):
        from_hf(data, image="images.1")
    with pytest.raises(ValueError, match=r"there is no 'picture'; there are 'image', 'label', 'note'"):
        from_hf(data, image="photo.picture")
    with pytest.raises(ValueError, match=r"there is no 'crop'; it is a list: give the number of an element"):
        from_hf(data, image="objects.crop")
    with pytest.raises(TypeError, match=r"name one of each row: image='images.0'"):
        from_hf(data, image="images")
    with pytest.raises(ValueError, match=r"image='photos.image' is no column"):
        from_hf(data, image="photos.image")
    null = datasets.Dataset.from_dict(
        {"photo": [{"image": encoded(0)}, None]}, features=datasets.Features({"photo": {"image": IMAGE}})
    )
    with pytest.raises(ValueError, match=r"row 1 of column 'photo.image' has no image \(null\)"):
        from_hf(null, image="photo.image", label=None)


def zipped(folder: Path, method: int) -> tuple[str, list[str]]:
    archive = folder / "photos.zip"
    with zipfile.ZipFile(archive, "w", method) as file:
        for i, data in enumerate(pictures(COUNT)):
            file.writestr(f"train/{i % 3}/{i}.jpg", data)
    return str(archive), [f"zip://train/{i % 3}/{i}.jpg::{archive}" for i in range(COUNT)]


@pytest.mark.parametrize("device", [None, "emulated"])
def test_members_of_zip_archives(tmp_path: Path, device: str | None) -> None:
    _, paths = zipped(tmp_path, zipfile.ZIP_STORED)
    photo = next(iter(sorted(PHOTOS.glob("*.jpg"))))
    rows = [*paths, str(photo), {"bytes": turned(3), "path": "x.jpg"}, paths[2]]
    data = datasets.Dataset.from_dict({"image": rows}, features=datasets.Features({"image": IMAGE}))
    data = data.shuffle(seed=3, keep_in_memory=True)
    source = from_hf(data, label=None, transform=SMALL)
    for one in (source, pickle.loads(pickle.dumps(source))):
        loader = DataLoader(one, 4, num_workers=2, device=device)
        assert loader.native, loader.explain()
        for number, image in enumerate(image for batch in loader for image in batch):
            assert torch.equal(image, SMALL(data[number]["image"].convert("RGB"))), number
        assert_same(loader, list(loader.reference()))
    at = data.cast_column("image", datasets.Image(decode=False))["image"][:].index({"bytes": None, "path": paths[4]})
    assert paths[4] in source.location(at) and source.read(at) == pictures(COUNT)[4]


def test_members_that_cannot_be_read_in_place(tmp_path: Path) -> None:
    def source(paths: list[str]) -> Any:
        data = datasets.Dataset.from_dict({"image": paths}, features=datasets.Features({"image": IMAGE}))
        return from_hf(data, label=None, transform=SMALL)

    archive, paths = zipped(tmp_path, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"0.jpg in .*photos.zip is compressed"):
        source(paths)
    with pytest.raises(ValueError, match=r"row 1 of column 'image' names zip://no.jpg::.*is not in the archive"):
        source([zipped(tmp_path, zipfile.ZIP_STORED)[1][0], f"zip://no.jpg::{archive}"])
    with pytest.raises(ValueError, match=r"row 0 of column 'image' names zip://a.jpg::.*none.zip: .*No such file"):
        source([f"zip://a.jpg::{tmp_path}/none.zip"])
    with pytest.raises(ValueError, match=r"not a file of this machine"):
        source(["zip://a.jpg::https://host/x.zip"])
    whole = source(zipped(tmp_path, zipfile.ZIP_STORED)[1])
    Path(archive).write_bytes(Path(archive).read_bytes() + b"\0")
    with pytest.raises(Exception, match="changed"):
        list(DataLoader(whole, 4))
