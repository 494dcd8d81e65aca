"""Programs with headrace's types: pyright and mypy accept them, strict, and every public name has a type.

Checked are all snippets of README.md and of the pages that run; those marked `no-run` are fragments of programs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import ROOT, SNIPPETS

from support import WATCHDOG_S

pytestmark = [pytest.mark.slow, pytest.mark.processes]
PACKAGES = ROOT / "python"
# Values that a loop's body binds are flagged where the loop might not run; datasets and others come without stubs.
LENIENT = {"reportPossiblyUnboundVariable": False, "reportMissingModuleSource": False, "reportMissingTypeStubs": False}
# Functions of torch and of Hugging Face's datasets that have types in part: strict mode flags every call of them.
FOREIGN = re.compile(r'Type of "(backward|step|from_numpy|manual_seed|from_dict|cast_column)" is partially unknown')
WRONG = "from headrace import DataLoader, ImageFolder\n\nDataLoader(ImageFolder('train'), batch_sise=3)\n"
# What programs pass and call, beside the pages' snippets: functions without types of their own, above all.
PROGRAM = """
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Subset, random_split
from typing_extensions import assert_type

import headrace
from headrace import DataLoader, ImageFolder, datasets, sampler, transforms


def brighten(image: Image.Image) -> Image.Image:
    return image.point(lambda value: value + 10)


def both(image: Image.Image, mask: Image.Image) -> tuple[Image.Image, Image.Image]:
    return image, mask


train = transforms.Compose([brighten, transforms.ToTensor(), lambda image: image * 2, nn.Identity()])
pairs = transforms.Compose([both, lambda image, mask: (image, mask)])
print(train.transforms[0](Image.new("RGB", (8, 8))), pairs)
folder = ImageFolder("train", lambda image: train(image), lambda label: -label, is_valid_file=lambda path: "x" in path)
folder.transform = lambda image: train(image)
folder.target_transform = None
print(transforms.Views([train, lambda image: train(image)]), transforms.Views({"a": train, "b": lambda image: image}))
print(transforms.RandomApply([lambda image: image], 0.3), transforms.RandomOrder([lambda image: image, brighten]))
print(transforms.RandomChoice([lambda image: image, brighten]), transforms.ByAspectRatio({(3, 4): lambda image: image}))
files = headrace.ImageFiles([Path("1.jpg")], [1], transform=lambda image: image, target_transform=lambda label: label)
shards = headrace.TarShards("shards/{00..03}.tar", transform=lambda image: image)
arrays = datasets.ImageArray(np.zeros((3, 8, 8, 3), np.uint8), [1, 2, 3], transform=lambda image: image)
first, _ = random_split(folder, [0.5, 0.5])
loader = DataLoader(
    Subset(folder, [1, 2]),
    batch_size=2,
    num_workers="auto",
    collate_fn=lambda samples: torch.stack([image for image, _ in samples]),
    worker_init_fn=lambda worker: None,
    out_transform=lambda batch: batch.mean(),
    device=torch.device("cpu"),
    memory_format="channels_last",
    dtype="float16",
)
for batch in loader:
    print(batch.shape)
for images, labels in DataLoader(headrace.Fields({"image": folder, "row": np.arange(3)}), shuffle=True):
    print(images, labels)
loader.load_state_dict(loader.state_dict())
loader.set_epoch(3)
stats = loader.stats()
print(stats.images, stats.as_dict()["stages"][0]["name"], [stage.p99_ms for stage in stats.stages], stats.verdict)
print(loader.errors[0].index, loader.explain(), loader.route, loader.verify(), loader.recipe())
print(loader.sampler, loader.batch_sampler, loader.collate_fn, loader.generator)
assert_type(loader.num_workers, int)
assert_type(loader.prefetch_factor, int | None)
print(folder[0], folder.classes[0].upper(), folder.class_to_idx["a"] + 1, arrays[0], shards[0], files[0], first[0])
for indices in sampler.LengthBucketBatchSampler([1, 2, 3], batch_size=2):
    print(indices[0] + 1)
with headrace.profile() as recording:
    next(iter(loader))
print(recording.summary()[0], [one.thread for one in recording.threads])
with headrace.publish(prometheus=0) as published:
    print(published.address)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snippets as modules of a package, a program that is right and one that is wrong."""
    made = tmp_path_factory.mktemp("types") / "snippets"
    made.mkdir()
    texts = {f"{page.removesuffix('.md').replace('-', '_')}_{i}": text for i, (page, text) in enumerate(SNIPPETS)}
    for name, text in {**texts, "__init__": "", "program": PROGRAM, "wrong": WRONG}.items():
        (made / f"{name}.py").write_text(text)
    return made


def output_of(*command: str, **environment: str) -> str:
    """What a tool of this environment prints, started in the checkout."""
    complete = [sys.executable, "-m", *command]
    environment = {**os.environ, **environment}
    done = subprocess.run(
        complete, capture_output=True, text=True, timeout=WATCHDOG_S, check=False, cwd=ROOT, env=environment
    )
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


def pyright(*options: str, **environment: str) -> dict:
    """What pyright finds."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    said = output_of("pyright", "--outputjson", *options, **environment)
    if not said.startswith("{"):
        pytest.skip(f"pyright does not start here: {said.strip()[-200:]}")
    found: dict = json.loads(said)
    assert found["summary"]["filesAnalyzed"] > 0, found["generalDiagnostics"]
    return found


def test_pyright_accepts_programs(folder: Path) -> None:
    config = {"extraPaths": [str(PACKAGES)], "typeCheckingMode": "strict", **LENIENT}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    found = pyright("--pythonpath", sys.executable, "-p", str(folder))["generalDiagnostics"]
    errors = [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in found
        if one["severity"] == "error" and not FOREIGN.match(one["message"])
    ]
    assert errors == ['wrong.py:3: No parameter named "batch_sise"']


def test_mypy_accepts_programs(folder: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    said = output_of("mypy", "--untyped-calls-exclude=torch", str(folder))  # torch's `backward` has no types
    errors = [line.rpartition("/")[2] for line in said.splitlines() if ": error: " in line]
    assert [line.partition(";")[0] for line in errors] == [
        'wrong.py:3: error: Unexpected keyword argument "batch_sise" for "DataLoader"'
    ]


def test_every_public_name_has_a_type() -> None:
    python = Path(sys.executable).parent  # pyright takes the packages of the first `python`
    path = f"{python}{os.pathsep}{os.environ.get('PATH', '')}"
    found = pyright("--verifytypes", "headrace", "--ignoreexternal", PATH=path)["typeCompleteness"]
    assert found["exportedSymbolCounts"]["withKnownType"] > 1000
    incomplete = [
        one["name"]
        for one in found["symbols"]
        if one["isExported"] and (one["isTypeAmbiguous"] or not one["isTypeKnown"])
    ]
    assert incomplete == []
