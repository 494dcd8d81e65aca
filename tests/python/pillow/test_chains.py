"""Random chains of torchvision's transforms of PIL images: the same pixels from deferred images and from Pillow's."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from damage import sound_files
from PIL import Image

import headrace
from png_samples import KINDS, png

CHAINS = int(os.environ.get("HEADRACE_CHAINS", "3000"))
MODES = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")


@pytest.fixture(scope="module")
def files(photographs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Small files of each coding, and photographs."""
    folder, made = tmp_path_factory.mktemp("files"), []
    for number, data in enumerate(sound_files(photographs)[:-1]):
        made.append(folder / f"{number}.jpg")
        made[-1].write_bytes(data)
    for number, (colour, depth) in enumerate(KINDS):
        made.append(folder / f"{number}.png")
        made[-1].write_bytes(png(70 + number, 60, colour, depth))
    return [*made, *photographs[:3]]


def transform(v1: ModuleType, draw: random.Random) -> Any:
    """One of torchvision's classes, with arguments drawn at random."""
    mode = v1.InterpolationMode(draw.choice(MODES))
    size, edge = (draw.randint(1, 70), draw.randint(1, 70)), draw.randint(5, 60)
    padding = draw.choice(["constant", "edge", "reflect", "symmetric"])
    return draw.choice(
        [
            lambda: v1.Resize(draw.choice([edge, size]), mode),
            lambda: v1.Resize(edge, mode, max_size=draw.choice([None, 80])),
            lambda: v1.CenterCrop(draw.choice([edge, size])),
            lambda: v1.RandomCrop(size, pad_if_needed=True, padding=draw.choice([None, 3]), padding_mode="constant"),
            lambda: v1.RandomResizedCrop(size, scale=(0.05, 1.0), interpolation=mode),
            lambda: v1.RandomHorizontalFlip(),
            lambda: v1.RandomVerticalFlip(),
            lambda: v1.Pad((1, 2, 3, 4), padding_mode=padding),
            lambda: v1.Grayscale(draw.choice([1, 3])),
            lambda: v1.RandomGrayscale(0.5),
            lambda: v1.ColorJitter(0.4, 0.3, 0.3, 0.1),
            lambda: v1.RandomRotation(draw.choice([(90, 90), (180, 180), (-20, 20)]), expand=draw.random() < 0.5),
            lambda: v1.RandomAffine(10, translate=(0.1, 0.1), scale=(0.8, 1.2)),
            lambda: v1.RandomPerspective(0.3),
            lambda: v1.GaussianBlur(3),
            lambda: v1.RandomInvert(),
            lambda: v1.RandomPosterize(3),
            lambda: v1.RandomSolarize(100),
            lambda: v1.RandomAutocontrast(),
            lambda: v1.RandomEqualize(),
            lambda: v1.RandomAdjustSharpness(2.0),
            lambda: v1.Lambda(lambda image: v1.FiveCrop(1)(image)[edge % 5]),
            lambda: v1.RandAugment(2, 9),
            lambda: v1.TrivialAugmentWide(),
            lambda: v1.AutoAugment(),
            lambda: v1.Lambda(lambda image: image.convert("RGB")),
        ]
    )()


def outcome(open_: Any, v1: ModuleType, path: Path, seed: int) -> Any:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    random.seed(seed)
    with open_(path) as image:
        return outcome_of_image(image, v1, draw)


def outcome_of_image(image: Any, v1: ModuleType, draw: random.Random) -> Any:
    if draw.random() < 0.7:
        image = image.convert(draw.choice(["RGB", "RGB", "L"]))
    chain = v1.Compose([transform(v1, draw) for _ in range(draw.randint(1, 6))])
    try:
        image = chain(image)
    except Exception as error:
        return type(error), str(error), torch.rand(1).item()
    last = draw.choice([np.asarray, v1.ToTensor(), v1.PILToTensor(), lambda image: image])
    made = last(image)
    if isinstance(made, Image.Image):
        made = np.frombuffer(made.tobytes(), np.uint8)
    return np.asarray(made).tobytes(), image.size, image.mode, torch.rand(1).item()


def different(torchvision: ModuleType, files: list[Path], seeds: range) -> tuple[list[int], int]:
    """The seeds of chains with another result than Pillow's, and the number of those that raised no error."""
    v1, found, made = torchvision.transforms, [], 0
    for seed in seeds:
        path = files[seed % len(files)]
        theirs = outcome(Image.open, v1, path, seed)
        made += isinstance(theirs[0], bytes)
        if seed % 2:
            ours = outcome(headrace.pillow.open, v1, path, seed)
        else:
            with headrace.pillow.deferred():  # replaces functions of Pillow and torchvision, too
                ours = outcome(Image.open, v1, path, seed)
        if ours != theirs:
            found.append(seed)
    return found, made


@pytest.mark.pixels
def test_chains_of_torchvisions_transforms(torchvision: ModuleType, files: list[Path]) -> None:
    found, made = different(torchvision, files, range(300))
    assert found == [] and made > 200


@pytest.mark.slow
@pytest.mark.pixels
def test_more_chains(torchvision: ModuleType, files: list[Path]) -> None:
    found, made = different(torchvision, files, range(300, CHAINS))
    assert found == [] and made > (CHAINS - 300) // 2
