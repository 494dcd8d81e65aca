"""Keys: names that readers split where they were joined, or numbers for all samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packs import write_tar

from headrace import EncodedImages, ImageFiles, ImageFolder, TarShards
from headrace._cli.pack.keys import Keys
from support import pictures, write_folder


def files(root: Path, names: list[str]) -> ImageFiles:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(pictures(1)[0])
    return ImageFiles([root / name for name in names])


def keys_of(source: Any) -> list[str]:
    keys = Keys(source)
    return [keys[i] for i in range(len(keys))]


def test_names_below_the_common_folder(tmp_path: Path) -> None:
    assert keys_of(ImageFolder(write_folder(tmp_path / "a", 3, 1))) == [f"class_0/{i:04}" for i in range(3)]
    assert keys_of(files(tmp_path / "b", ["x/1.jpg", "x/2.b.PNG", "x.y/é.webp"])) == ["x/1", "x/2_b", "x.y/é"]
    assert keys_of(files(tmp_path / "c", ["only.jpg"])) == ["only"]
    assert keys_of(files(tmp_path / "c", ["no_suffix", "a.bin"])) == ["no_suffix", "a_bin"]


@pytest.mark.parametrize(
    "names, why",
    [
        (["a.jpg", "a.png"], "two samples would have the same key"),
        (["a.b.jpg", "a_b.jpg"], "two samples would have the same key"),
        (["__notes__/1.jpg", "x/1.jpg"], "'__notes__/1' cannot be a key"),
        ([".jpg", "x.jpg"], "'' cannot be a key"),
        (["a\nb.jpg", "x.jpg"], r"'a\nb' cannot be a key"),
        ([f"{'n' * 240}.jpg", "x.jpg"], f"{'n' * 240!r} cannot be a key"),
        (["\udcff.jpg", "x.jpg"], r"'\udcff' cannot be a key"),
    ],
)
def test_numbers_where_a_name_cannot_be_a_key(names: list[Any], why: str, tmp_path: Path) -> None:
    source = files(tmp_path, names)
    assert keys_of(source) == ["000000", "000001"]
    assert Keys(source).why_numbers == why


def test_names_that_leave_the_folder_are_numbers() -> None:
    source: Any = EncodedImages(pictures(2))
    source.keys = ["a", "../../etc/passwd"]
    assert keys_of(source) == ["000000", "000001"]


def test_keys_of_shards_stay_or_are_numbers(tmp_path: Path) -> None:
    parts = [("./a.b/1.jpg", pictures(1)[0]), ("./2.jpg", pictures(1)[0])]
    write_tar(tmp_path / "a.tar", parts)
    assert keys_of(TarShards(tmp_path / "a.tar", label=None)) == ["a.b/1", "2"]
    write_tar(tmp_path / "b.tar", parts)  # keys that start over in each shard
    source = TarShards(str(tmp_path / "?.tar"), label=None)
    assert keys_of(source) == [f"{i:06}" for i in range(4)]


def test_sources_without_names_have_numbers() -> None:
    keys = Keys(EncodedImages(pictures(2)))
    assert (keys[1], keys.are_numbers, keys.why_numbers) == ("000001", True, None)
