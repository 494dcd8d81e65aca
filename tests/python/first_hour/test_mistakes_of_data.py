"""Folders, files, shards, URLs and commands that a newcomer gets wrong: each message names cause and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import Mistake, check, gray_array, images, load, make_folder, sized
from torch.utils.data import Subset

import headrace
from headrace import transforms as T
from headrace._cli.main import main
from headrace._storage.remote.fetcher_registry import close_all

M = Mistake
h: Any = headrace  # arguments of wrong types are what is tested
URL = "http://127.0.0.1:1/0.tar"
QUICK = headrace.Network(patience=0.2)


def files(folder: Path, *names: str) -> list[str]:
    return [str(folder / name) for name in names]


MISTAKES = {
    "a folder that is missing": M(
        lambda folder: h.ImageFolder(str(folder / "okay")), FileNotFoundError, "okay", "look for a misspelt name"
    ),
    "an empty folder": M(
        lambda folder: h.ImageFolder(str(folder / "empty")), FileNotFoundError, "empty", r"root/cat/1\.jpg"
    ),
    "a folder without class folders": M(
        lambda folder: h.ImageFolder(str(folder / "ok/a")),
        FileNotFoundError,
        "4 images itself",
        r"headrace\.ImageFiles",
    ),
    "a class without images": M(
        lambda folder: h.ImageFolder(str(folder / "classes")), FileNotFoundError, "classes a", "Supported extensions"
    ),
    "a file as a folder": M(
        lambda folder: h.ImageFolder(str(folder / "x.tar")), NotADirectoryError, r"x\.tar", "TarShards and Zip"
    ),
    "a list as a folder": M(
        lambda folder: h.ImageFolder(files(folder, "ok")),
        TypeError,
        r"root=\[",
        r"headrace\.ImageFiles takes a list",
    ),
    "a misspelt keyword": M(
        lambda folder: h.ImageFolder(str(folder / "ok"), tranform=None),
        TypeError,
        "'tranform'",
        "Did you mean 'transform'",
    ),
    "a transform in the place of labels": M(
        lambda folder: h.ImageFiles(files(folder, "1.jpg"), T.ToTensor()), TypeError, "not ToTensor", "transform="
    ),
    "the class of a transform": M(
        lambda folder: load(h.ImageFolder(str(folder / "ok"), T.ToTensor)), TypeError, "class ToTensor", r"ToTensor\(\)"
    ),
    "a list of transforms": M(
        lambda folder: load(h.ImageFolder(str(folder / "ok"), [T.ToTensor()])),
        TypeError,
        r"transform=\[ToTensor\(\)\]",
        r"Compose\(\[\.\.\.\]\)",
    ),
    "a text as transform": M(
        lambda folder: load(h.ImageFolder(str(folder / "ok"), "resize")),
        TypeError,
        "transform='resize'",
        "pass a function",
    ),
    "one path as a list": M(
        lambda folder: h.ImageFiles(str(folder / "ok/a/0.jpg")), TypeError, "not one path", "must be a list of paths"
    ),
    "a file that is missing": M(
        lambda folder: load(h.ImageFiles(files(folder, "no.jpg"), transform=sized())), OSError, r"no\.jpg", "on_error="
    ),
    "labels of another length": M(
        lambda folder: h.ImageFiles(files(folder, "ok/a/0.jpg"), [1, 2]), ValueError, "2 labels", "one for each path"
    ),
    "a mode of OpenCV": M(
        lambda folder: h.ImageFiles(files(folder, "ok/a/0.jpg"), mode="BGR"), ValueError, "not 'BGR'", "must be 'RGB'"
    ),
    "a broken image": M(
        lambda folder: load(h.ImageFolder(str(folder / "broken"), sized())), OSError, r"a/0\.jpg", "on_error="
    ),
    "an array of floats": M(lambda folder: h.ImageArray(gray_array()), TypeError, "float32", "uint8 values"),
    "columns of two lengths": M(
        lambda folder: h.Columns({"a": np.zeros(3), "b": np.zeros(4)}), ValueError, "'b' has 4 rows", "'a' has 3"
    ),
    "a list of columns": M(
        lambda folder: h.Columns([np.zeros(3)]),
        TypeError,
        "not list",
        "a dict of arrays",
    ),
    "an index of a Subset": M(
        lambda folder: load(Subset(images(folder), [0, 99])), IndexError, "index 99", "a dataset of 8 samples"
    ),
    "a transform of a Subset": M(
        lambda folder: load(Subset(h.ImageFolder(str(folder / "ok"), [T.ToTensor()]), [0])),
        TypeError,
        "transform=",
        "Compose",
    ),
    "no tar archive": M(
        lambda folder: h.TarShards(str(folder / "x.tar")), ValueError, r"x\.tar: at byte 0", "this is no tar archive"
    ),
    "a shard that is missing": M(
        lambda folder: h.TarStream(str(folder / "no.tar")), FileNotFoundError, r"no\.tar", "no such shard"
    ),
    "a pattern without files": M(
        lambda folder: h.TarShards(str(folder / "n-*.tar")), FileNotFoundError, r"n-\*\.tar", "no file fits"
    ),
    "a brace that is open": M(
        lambda folder: h.TarShards(str(folder / "{0..3.tar")), ValueError, r"\{0\.\.3", "a brace is not closed"
    ),
    "a misspelt protocol": M(lambda folder: h.TarShards("htp://h/0.tar"), ValueError, "'htp'", "did you mean http://"),
    "an unknown protocol": M(lambda folder: h.TarShards("qqq://h/0.tar"), ValueError, "'qqq'", "s3://"),
    "one slash": M(lambda folder: h.TarShards("http:/h/0.tar"), ValueError, "http:/h/0", "write http://h/0.tar"),
    "a server that is off": M(
        lambda folder: h.TarShards(URL, network=QUICK),
        OSError,
        r"127\.0\.0\.1:1/0\.tar",
        r"check the address and the port|Network\.patience",
    ),
    "a pattern behind a URL": M(lambda folder: h.TarShards("http://h/*.tar"), ValueError, r"\*", r"\{000\.\.012\}"),
    "options of URLs for files": M(
        lambda folder: h.TarStream(str(folder / "x.tar"), storage_options={}),
        ValueError,
        "storage_options",
        "leave them",
    ),
    "a zip that is none": M(lambda folder: h.Zip(str(folder / "x.tar")), ValueError, r"x\.tar", "no zip archive"),
    "a cache of no size": M(
        lambda folder: h.ImageFolder(str(folder / "ok"), cache="memory:lots"), ValueError, "'lots'", "such as '100 GB'"
    ),
    "no requests": M(lambda folder: h.Network(requests=0), ValueError, "not 0", "must be positive"),
}

COMMANDS = {
    "an unknown command": (["bnech"], "'bnech'", "did you mean bench?"),
    "an unknown option": (["demo", "--quik"], "--quik", "did you mean --quick?"),
    "no dataset": (["bench"], "required: DATASET", "usage: headrace bench"),
    "a folder that is missing": (["bench", "nope"], "nope does not exist", "a folder of images"),
    "a folder without images": (["doctor", "empty"], "empty holds no images", "a folder of images"),
    "a wrong recipe": (["bench", "ok", "--recipe", "nonsense"], "nonsense raises NameError", "it takes train, eval"),
    "a misspelt choice": (["verify", "ok", "--recipe", "trian"], "'trian'", "did you mean train?"),
    "a batch of none": (["bench", "ok", "--batch-size", "0"], "--batch-size: 0", "a whole number from 1 up"),
    "one of two paths": (["pack", "ok"], "required: DST", "SRC DST"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = make_folder(tmp_path_factory.mktemp("mistakes"))
    (made / "classes/a").mkdir(parents=True)
    yield made
    close_all()  # the reader of the URLs


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_cause_and_remedy(folder: Path, name: str) -> None:
    if "http" in str(MISTAKES[name].remedy) or name in ("a server that is off", "an unknown protocol"):
        pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")
    check(MISTAKES[name], folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_so_too(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, cause, remedy = COMMANDS[name]
    monkeypatch.chdir(folder)
    try:
        status: object = main(arguments)
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr().err
    assert status == 2 and cause in said and remedy in said, said


def test_there_are_more_than_the_first_hour_had() -> None:
    from test_mistakes_of_loaders import MISTAKES as OF_LOADERS

    assert len(OF_LOADERS) + len(MISTAKES) + len(COMMANDS) >= 53
    assert headrace.DataLoader.__init__.__wrapped__.__name__ == "__init__"  # type: ignore[attr-defined]
