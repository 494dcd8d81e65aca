"""The scan of a dataset: what the files are, which ones are broken, how fast the disk is, and what follows."""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace import EncodedImages, ImageFiles
from headrace._cli.doctor import scan as scanning
from headrace._cli.doctor import scan_summary
from headrace._cli.doctor.disk import DiskSpeed, cold_speed, files_of
from headrace._cli.doctor.scan import Scan, scan
from headrace._cli.main import main
from headrace._recipe.images.file_header import file_header
from support import pictures, truncated, write_folder


def encoded(form: str, size: tuple[int, int] = (40, 30), orientation: int = 1, **options: Any) -> bytes:
    out, exif = BytesIO(), Image.Exif()
    exif[0x112] = orientation
    Image.new("RGB", size, (10, 200, 90)).save(out, form, exif=exif.tobytes(), **options)
    return out.getvalue()


def test_headers() -> None:
    jpeg = file_header(encoded("JPEG", (40, 30), 6, progressive=True))
    assert (jpeg.format, jpeg.width, jpeg.height, jpeg.progressive, jpeg.orientation) == ("JPEG", 40, 30, True, 6)
    assert not file_header(encoded("JPEG")).progressive and file_header(encoded("JPEG")).orientation == 1
    png = file_header(encoded("PNG", (7, 9), 3))
    assert (png.format, png.width, png.height, png.orientation, png.native) == ("PNG", 7, 9, 3, True)
    assert file_header(encoded("JPEG")).native
    for data in (b"", b"no image", b"\xff\xd8\xff", encoded("PNG")[:20]):
        assert file_header(data).bytes == len(data)


def mixed() -> EncodedImages:
    plain = [encoded("JPEG", (40 + i, 30)) for i in range(60)]
    turned = [encoded("JPEG", orientation=8), encoded("PNG", orientation=6)]
    return EncodedImages([*plain, encoded("JPEG", progressive=True), *turned, b"no image", truncated(pictures()[0])])


def test_what_is_found() -> None:
    found = scan(mixed(), 2)
    assert found.scanned == found.samples == 65
    assert found.formats == {"JPEG": 63, "PNG": 1, "?": 1}
    assert (found.progressive, found.turned, len(found.broken)) == (1, 2, 2)
    assert [place for place, _ in found.broken] == [EncodedImages.location(mixed(), i) for i in (63, 64)]
    assert "cannot identify image file" in found.broken[0][1] and "truncated" in found.broken[1][1]
    assert found.edges.shape == (64, 2) and found.sizes.shape == (65,)
    lines = [*scan_summary.lines(found, DiskSpeed(10**6, 10, 0.01, 0))]
    assert lines[0].startswith("scanned       all 65 files")
    assert "formats       JPEG 63 (96.9%), PNG 1 (1.5%), ? 1 (1.5%)" in lines
    assert "reading       100 MB/s, one read after another, from the disk" in lines
    assert "EXIF turned   2 (3.1%), ignored by this dataset, as by torchvision's" in lines
    (widths,) = (line for line in lines if line.startswith("width, px"))
    quantiles = np.quantile(found.edges[:, 0], [0, 0.05, 0.5, 0.95, 1])
    assert [float(cell) for cell in widths.split()[2:]] == [round(q) for q in quantiles]
    assert lines[-3] == "broken        2:"


def test_a_sample_of_a_large_dataset() -> None:
    found = scan(mixed(), 1, 20)
    assert (found.scanned, found.samples) == (20, 65)
    (total,) = (line for line in scan_summary.lines(found, None) if line.startswith("total"))
    assert total.endswith("estimated from the sample")


def test_a_scan_does_not_touch_the_dataset() -> None:
    class Marked(EncodedImages):
        pass

    source = Marked(pictures(4), [1, 2, 3, 4], transform := (lambda image: image))
    scan(source, 1)
    assert source.transform is transform and source.has_targets


def test_an_interrupt_keeps_what_was_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    read = file_header
    seen: list[bytes] = []

    def header(data: bytes) -> Any:
        if len(seen) == 40:
            raise KeyboardInterrupt
        seen.append(data)
        return read(data)

    monkeypatch.setattr(scanning, "file_header", header)
    found = scan(mixed(), 1)
    assert found.interrupted and found.scanned == 40
    assert "40 of 65 files (interrupted)" in next(iter(scan_summary.lines(found, None)))


def test_recommendations_have_numbers() -> None:
    found = scan(mixed(), 2)

    def said(found: Scan, disk: DiskSpeed | None, memory: float) -> str:
        return " ".join(scan_summary.recommendations(found, disk, memory))

    text = said(found, None, 1e12)
    assert re.search(r"num_workers=2 delivers about [\d,]+( to [\d,]+)? images/s", text)
    assert "fit in the memory of this machine (1,000.0 GB)" in text
    assert "2 files are broken" in text and "2 images (3.1%) are trained on their side" in text
    slow = said(found, DiskSpeed(10**6, 10, 100.0, 0), 1e3)
    assert "do not fit in memory" in slow and "less than decoding needs" in slow
    fast = said(found, DiskSpeed(10**12, 10, 1.0, 0), 1e3)
    assert "enough for decoding" in fast
    assert "do not fit" not in said(found, DiskSpeed(10**6, 10, 1.0, 10), 1e3)  # read from memory: nothing is known
    large = scan(EncodedImages([encoded("JPEG", (2000, 1000))]), 1)
    assert "copies with a shorter edge of 512 would have 26% of the pixels" in said(large, None, 1e12)
    progressive = scan(EncodedImages([encoded("JPEG", progressive=True), encoded("PNG"), encoded("JPEG")]), 1)
    assert "33% are progressive JPEGs" in said(progressive, None, 1e12)
    assert "33% are no JPEGs" in said(progressive, None, 1e12)
    for line in scan_summary.wrap_text(text).splitlines():
        assert len(line) <= 80


def test_the_disk(tmp_path: Path) -> None:
    root = write_folder(tmp_path, 6)
    paths = sorted(str(path) for path in root.rglob("*.jpg"))
    assert [*files_of(ImageFiles(paths))] == paths
    assert [*files_of(EncodedImages(pictures(2)))] == []
    speed = cold_speed(paths, 0.01)
    assert speed is not None and speed.bytes > 0 and speed.mb_per_s > 0
    assert cold_speed([]) is None and cold_speed([str(tmp_path / "missing")], 0.01) is None
    assert DiskSpeed(1, 10, 1.0, 1).cold and DiskSpeed(1, 10, 1.0, 2).cold is False


def test_a_file_system_that_cannot_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: Any) -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "preadv", unsupported)
    (tmp_path / "a").write_bytes(b"data")
    speed = cold_speed([str(tmp_path / "a")], 0.01)
    assert speed is not None and speed.from_memory is None and speed.cold is None
    assert any("perhaps from memory" in line for line in scan_summary.lines(scan(mixed(), 1), speed))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_folder(tmp_path / "data", 12)
    assert main(["doctor", str(root)]) == 0
    out = capsys.readouterr().out
    assert (
        "scanned       all 12 files" in out
        and "broken        0" in out
        and "-> A training crop (RandomResizedCrop(224)" in out
    )
    (root / "class_0" / "cut.jpg").write_bytes(truncated(pictures()[0]))
    assert main(["doctor", str(root), "--workers", "1", "--limit", "100"]) == 1
    assert re.search(r"cut\.jpg: image file is truncated", capsys.readouterr().out)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.jpg").write_bytes(b"no image")
    assert main(["doctor", str(broken)]) == 1
    out = capsys.readouterr().out
    assert "broken        1:" in out and "-> " not in out


def test_what_cannot_be_scanned_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("mine_scanned.py").write_text(
        "import numpy as np\nfrom headrace import ImageArray\nnumbers = [1, 2]\n"
        "def pixels():\n    return ImageArray(np.zeros((3, 8, 8, 3), np.uint8))\n"
    )
    for text, message in {
        str(tmp_path / "missing"): "missing does not exist",
        "mine_scanned:numbers": "headrace does not know builtins.list",
        "mine_scanned:pixels": "holds pixels, not encoded files",
    }.items():
        assert main(["doctor", text]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and message in err
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    if not os.access(locked, os.R_OK):  # the superuser may read it
        assert main(["doctor", str(locked)]) == 2
        assert "Permission denied" in capsys.readouterr().err
