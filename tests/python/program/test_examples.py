"""The examples run as their first lines say, and resuming one changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace._cli.demo.photo_folder import make_photo_folder
from support import WATCHDOG_S
from trainers import EXAMPLES, RUNNER, finish, fork, needs
from video_files import why_no_torchcodec

pytestmark = pytest.mark.processes


def run(*arguments: object) -> list[str]:
    """Runs an example in a new Python, with as many threads as `again`."""
    command, variables = [sys.executable, *map(str, arguments)], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def again(*arguments: object) -> list[str]:
    """Runs an example that has run in a new Python, in one that has imported torch and headrace."""
    return finish(fork("torch", *arguments))


def test_training_resumes_with_the_very_next_batch(tmp_path: Path) -> None:
    folder = make_photo_folder(tmp_path / "set", files=50).train
    script = [EXAMPLES / "train.py", folder, "--epochs", 2, "--checkpoint"]
    whole = run(*script, tmp_path / "whole.pt")
    assert len(whole) == 2 and whole[1].startswith("epoch 1: loss ")
    first = again(*script, tmp_path / "parts.pt", "--stop-after", 7)
    assert first[-1].startswith("left in epoch ")
    second = again(*script, tmp_path / "parts.pt")
    assert second[0].startswith("resumed in epoch ")
    assert second[-1] == whole[-1]
    again(*script, tmp_path / "epoch.pt", "--stop-after", 5)  # all of the first epoch's batches
    assert again(*script, tmp_path / "epoch.pt")[-1] == whole[-1]


def test_evaluation_is_the_same_with_stock_torch(tmp_path: Path) -> None:
    layout = make_photo_folder(tmp_path / "set", files=50)
    again(EXAMPLES / "train.py", layout.train, "--checkpoint", tmp_path / "run.pt", "--stop-after", 4)
    ours = run(EXAMPLES / "evaluate.py", layout.validation, "--checkpoint", tmp_path / "run.pt")
    assert ours[-1].startswith("all ") and " of 10: " in ours[-1]
    ours_only = "    DataLoader,  # was: from torch.utils.data import DataLoader\n"
    source = (EXAMPLES / "evaluate.py").read_text()
    assert source.count(ours_only) == 1
    stock = tmp_path / "stock.py"
    line = "from torch.utils.data import DataLoader\n"
    stock.write_text(source.replace(ours_only, "").replace("import torch\n", "import torch\n" + line, 1))
    shutil.copy(EXAMPLES / "train.py", tmp_path)
    assert again(stock, layout.validation, "--checkpoint", tmp_path / "run.pt") == ours


def test_a_missing_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "evaluate.py"), "--checkpoint", str(tmp_path / "none.pt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert done.returncode == 1
    assert done.stderr == f"there is no {tmp_path / 'none.pt'}: run examples/train.py first\n"


def test_batches_are_transformed_where_they_are() -> None:
    lines = run(EXAMPLES / "batch_transforms.py")
    assert [line.split(":")[0] for line in lines] == ["batch 0", "batch 1", "batch 2"]


def test_a_step_of_ones_own_is_named_and_verified() -> None:
    lines = run(EXAMPLES / "own_steps.py")
    assert any("Sharpened" in line and "Python" in line for line in lines)
    assert any(line.endswith("compared with Pillow and torch: 0 differ") for line in lines)


def test_datasets_of_ones_own_are_made_on_the_device() -> None:
    needs("torchvision", "datasets", "webdataset")
    lines = again(RUNNER, "native", EXAMPLES / "own_dataset_on_gpu.py")
    assert [line.split(":")[0] for line in lines[::3]] == ["six views", "captions", "table"]
    assert all(" of them from records" in line for line in lines[1::3])


@pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))
def test_sounds_are_classified() -> None:
    lines = again(EXAMPLES / "audio_classes.py", "--epochs", 2)
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1"]


def test_images_and_queries_of_two_loaders_belong_together() -> None:
    lines = run(EXAMPLES / "queries.py", "--epochs", 2)
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1"]
    assert again(EXAMPLES / "queries.py", "--epochs", 2, "--workers", 0) == lines


def test_two_views_train_an_encoder() -> None:
    lines = run(EXAMPLES / "two_views.py", "--epochs", 1)
    assert "0 differ" in lines[0] and lines[1].startswith("epoch 0: loss ")
    assert lines[2] == f"ten views: {[(16, 3, 64, 64)] * 2 + [(16, 3, 32, 32)] * 8}"


def test_images_and_their_masks() -> None:
    lines = run(EXAMPLES / "segmentation.py", "--epochs", 2)
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1"]
    losses = [float(line.split()[3]) for line in lines]
    assert losses[1] < losses[0]
    assert again(EXAMPLES / "segmentation.py", "--epochs", 2, "--workers", 0) == lines
