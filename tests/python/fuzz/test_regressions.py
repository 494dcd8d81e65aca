"""Inputs of fuzz/regressions, at which the JPEG fuzzer once failed: their boxes are Pillow's, or are refused.

Rows and pieces of a scan are decoded side by side with however few rows, where the processor can, as in the fuzzer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REGRESSIONS = Path(__file__).resolve().parents[3] / "fuzz" / "regressions"
FILES = sorted(path for path in REGRESSIONS.glob("*") if path.name != ".gitkeep")

PROGRAM = """
import io, random, sys
from pathlib import Path
from PIL import Image
from headrace._base.native import core

data = Path(sys.argv[1]).read_bytes()
assert core.jpeg_header(data)["not_plain"] is None
image = Image.open(io.BytesIO(data)).convert("RGB")
width, height = image.size
draw, equal = random.Random(1), 0
for number in range(400):
    x, y = draw.randrange(width), draw.randrange(height)
    box = (0, 0, width, height) if number == 0 else (x, y, draw.randint(1, width - x), draw.randint(1, height - y))
    try:
        made = core.decode_crop(data, *box)
    except core.NeedsPillow:
        continue
    x, y, columns, rows = box
    pixels = Image.frombytes("RGB", (columns, rows), made, "raw", "RGBX")
    assert pixels.tobytes() == image.crop((x, y, x + columns, y + rows)).tobytes(), box
    equal += 1
print(equal, "equal")
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_boxes_are_pillows_or_refused(path: Path) -> None:
    environment = {**os.environ, "HEADRACE_HUFFMAN": "lanes"}
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("equal\n")


def test_there_are_some() -> None:
    assert FILES
