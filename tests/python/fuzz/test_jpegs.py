"""Changed JPEG files: a few of those that `python -m fuzz.jpegs` compares, and that it finds what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("fuzz.chains.images", reason="torchvision is not installed", exc_type=ImportError)
pytest.importorskip("timm", exc_type=ImportError)

from fuzz.jpegs import campaign
from fuzz.jpegs.differential import Oracle
from fuzz.jpegs.mutations import mutated
from fuzz.jpegs.structure import joined, parts_of

from headrace._base.native import core

pytestmark = pytest.mark.pixels


def files() -> list[bytes]:
    return [joined(parts) for parts in campaign.seeds()]


def test_parts_are_the_whole_file() -> None:
    for path in campaign.CORPUS.glob("*.jpg"):
        assert joined(parts_of(path.read_bytes())) == path.read_bytes()
    with pytest.raises(ValueError, match="no marker at byte 0"):
        parts_of(b"GIF89a")


def test_changes_depend_on_the_seed_alone_and_differ() -> None:
    seeds = campaign.seeds()
    made = [[joined(mutated(random.Random(n), seeds[n % len(seeds)], seeds)) for n in range(300)] for _ in range(2)]
    assert made[0] == made[1]
    assert sum(one != joined(seeds[n % len(seeds)]) for n, one in enumerate(made[0])) > 270


def test_a_few_files(tmp_path: Path) -> None:
    some = campaign.Campaign(11, tmp_path)
    for _ in range(3):
        some.round(64)
    assert some.differences == [] and list(tmp_path.iterdir()) == []
    assert some.files == 192 and 20 < some.refused < 180 and some.comparisons == 192 * len(core.isas())


def test_a_pixel_and_a_verdict_that_differ_are_found(tmp_path: Path) -> None:
    oracle = Oracle([*files()[:4], b"\xff\xd8\xff\xd9"], "whole", 1)
    assert list(oracle.differences("scalar")) == []
    oracle.samples[2][0, 1, 1] += 1 / 256
    oracle.errors[3] = OSError("truncated")
    oracle.errors.pop(4)
    oracle.samples[4] = oracle.samples[0]
    said = {one.number: one.said for one in oracle.differences("scalar", 2)}
    assert said.keys() == {2, 3, 4}
    assert said[2] == "scalar: 1 of 1728 values differ"
    assert "Pillow raises OSError('truncated'), and headrace makes a sample" in said[3]
    assert "Pillow makes a sample, and headrace raises" in said[4]
