"""``headrace pack --engine ray``: a local cluster writes the same shards, also when a worker is killed in mid-job."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from packs import SMALL, content, packed

from headrace import ImageFolder
from headrace._cli.main import main
from headrace._cli.pack.conversion import LOSSLESS
from headrace._cli.pack.manifest import require_manifest
from support import output_of, write_folder

COUNT = 24

# A sample kills its worker the first time that it is read; another source fails in a sample.
PROGRAM = """
import os, signal, sys
from contextlib import nullcontext
from pathlib import Path
import ray
from headrace import ImageFolder
from headrace._cli.pack.conversion import Conversion
from headrace._cli.pack.packer import MachineShare, pack
from headrace._cli.pack.ray_tasks import run_with_ray
from headrace._cli.pack.tar_contents import contents_of

images, folder, bad, temporary, size = {arguments!r}
sys.stderr = open(os.devnull, "w")  # Ray's messages
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _temp_dir=temporary)

def packed(folder, act):
    contents = contents_of(ImageFolder(images))
    here, sample = os.getpid(), contents.sample
    contents.sample = lambda index: act(index, here) or sample(index)
    options = dict(share=MachineShare(), engine=run_with_ray, overwrite=False)
    bar = lambda total, done: nullcontext(lambda more: None)
    pack(contents, Path(folder), Conversion(), shard_size=int(size), bar=bar, **options)

def kill(index, here):
    mark = Path(folder).with_name("killed")
    if index == 13 and os.getpid() != here and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def fail(index, here):
    if index == 13 and os.getpid() != here:
        raise ValueError("sample 13 is odd")

packed(folder, kill)
print(Path(folder).with_name("killed").exists())
try:
    packed(bad, fail)
except ValueError as error:
    print(type(error).__name__, error)
ray.shutdown()
"""


@pytest.mark.slow
@pytest.mark.trainers
@pytest.mark.processes
def test_ray_writes_the_same_shards_though_a_worker_is_killed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    images, folder, bad = write_folder(tmp_path / "images", COUNT), tmp_path / "pack", tmp_path / "bad"
    packed(ImageFolder(images), tmp_path / "here", LOSSLESS)
    arguments = [str(one) for one in (images, folder, bad, tmp_path_factory.mktemp("r"), SMALL)]
    out = output_of(PROGRAM.format(arguments=arguments))
    said = [line for line in out.splitlines() if "(raylet)" not in line]
    assert said == ["True", "ValueError sample 13 is odd"]
    assert require_manifest(folder).complete and content(folder) == content(tmp_path / "here")
    assert not require_manifest(bad).complete


def test_without_ray_it_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = importlib.import_module

    def without(name: str, *arguments: Any) -> Any:
        if name == "ray":
            raise ImportError("no module")
        return original(name, *arguments)

    monkeypatch.setattr(importlib, "import_module", without)
    images = write_folder(tmp_path / "images", 3)
    assert main(["pack", str(images), str(tmp_path / "pack"), "--engine", "ray"]) == 1
    expected = "headrace pack: --engine ray needs Ray, which is not installed: pip install ray\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("options", [["--raw", "9"], ["--workers", "2"]])
def test_options_that_ray_does_not_take(options: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pack", "x", "y", "--engine", "ray", *options])
    assert "--engine ray takes neither --raw, which is one file, nor --workers" in capsys.readouterr().err


def test_folders_are_absolute_for_other_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(tmp_path / "images", 3)
    monkeypatch.chdir(tmp_path)
    assert main(["pack", "images", "pack", "--workers", "1"]) == 0
    monkeypatch.chdir(tmp_path / "images")
    assert main(["verify", str(Path("..", "pack")), ".", "--workers", "1"]) == 0
    assert f"{tmp_path / 'pack'}" in capsys.readouterr().out
