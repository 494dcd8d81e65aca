"""``headrace bench`` of a folder of videos: clips by headrace and by torch's DataLoader with torchcodec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from headrace import DataLoader
from headrace._cli import inputs
from headrace._cli.bench import comparison
from headrace._cli.main import main
from torchvision_shim import import_torchvision
from video_files import INDEXED, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)
import_torchvision()

QUICK = ["--rounds", "1", "--seconds", "0.01", "--samples", "4", "--batch-size", "2", "--workers", "1"]

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clips")
    for label, name in (("a", "x264.mp4"), ("b", "vp9.webm"), ("b", "one_group.mp4")):
        (made / label).mkdir(exist_ok=True)
        make_video(made / label / name, *INDEXED[name])
    (made / "b" / "text.mp4").write_text("no video")
    return made


@pytest.mark.parametrize("recipe", ["train", "eval"])
def test_clips_are_compared_and_timed(
    folder: Path, recipe: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        comparison, "list_contenders", lambda: {"torch": torch.utils.data.DataLoader, "headrace": DataLoader}
    )
    assert main(["bench", str(folder), *QUICK, "--recipe", recipe, "--json", "-"]) == 0
    held = json.loads(capsys.readouterr().out)
    assert held["kind"] == "Videos" and held["recipe"] == recipe and held["batch_size"] == 2
    assert (held["samples"], held["timed"]) == (4, 3) and "text.mp4" in held["notes"][0]
    assert "0 differ" in held["equality"]
    what = "labels, shapes and dtypes" if recipe == "train" else "all values"  # a clip is as long as these files
    assert f"{what} of 2 batches of torch's loader are equal" in held["equality"]
    assert [one["loader"] for one in held["figures"]] == ["torch", "headrace"]
    assert all(len(one["samples_per_s"]) == 1 and one["median"] > 0 for one in held["figures"])


def test_what_is_a_folder_of_videos(folder: Path, tmp_path: Path) -> None:
    found = inputs.clips_of(str(folder))
    assert found is not None and [found.target(index) for index in range(len(found))] == [0, 1, 1, 1]
    (tmp_path / "image.png").write_bytes(b"no image")
    make_video(tmp_path / "video.mp4", *INDEXED["x264.mp4"])
    assert inputs.clips_of(str(tmp_path)) is None and inputs.clips_of("module:object") is None


def test_other_recipes_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(folder), *QUICK, "--recipe", "Compose([Resize(24)])"]) == 2
    assert "clips of videos take train, eval, or module:object" in capsys.readouterr().err
