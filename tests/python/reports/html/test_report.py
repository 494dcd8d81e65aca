"""``loader.report`` and ``headrace report``: what the page holds, and that the loader stays as it is."""

from __future__ import annotations

import base64
import json
import re
import time
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace import DataLoader, EncodedImages, ImageFolder
from headrace import transforms as T
from headrace._cli.main import main
from headrace._reports.html.batch_recording import count_samples
from headrace._reports.html.document import document
from headrace._reports.html.pictures import make_pictures as sheet
from headrace._reports.html.report_data import Facts, Progress
from headrace._reports.html.timeline_data import collect_spans
from headrace._reports.html.trace_facts import facts_of
from headrace._reports.loader.markup import histogram, time_chart
from support import assert_same, blobs, evaluation, numpy_words, pictures, train, truncated, write_folder


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id=data>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


ALL = ["Verdict", "Speed", "Where the time goes", "Timeline", "What the network sees", "Files", "Slowest files"]


def test_the_page_of_a_loader(tmp_path: Path) -> None:
    dataset = ImageFolder(write_folder(tmp_path / "data", 24), train(32))
    loader = DataLoader(dataset, 4, shuffle=True, num_workers=2)
    loader.report(tmp_path / "r.html", batches=5)
    page = (tmp_path / "r.html").read_text()
    assert headings(page) == [*ALL, "Loader and machine"]
    data = data_of(page)
    progress = data["progress"]
    assert progress["counts"] == [4] * 5 and progress["times_s"] == sorted(progress["times_s"])
    assert f"<b>{progress['per_second']:,.0f} samples/s</b>" in page
    # One of the two may have taken every batch: the other started late.
    workers = {lane["thread"] for lane in data["timeline"]["lanes"]} - {"MainThread", "headrace-pillow"}
    assert workers and workers <= {"headrace worker 0", "headrace worker 1"}
    by_stage = {one["stage"]: one for one in data["stages"] if one["thread"] == "headrace worker"}
    assert f"{by_stage['decode']['self_s']:.3f} s" in page
    main = sum(one["self_s"] for one in data["stages"] if one["thread"] == "MainThread")
    found = re.search(r">your own code<.*?>([\d.]+) s,.*>([\d.]+) s recorded", page, re.S)
    assert found is not None
    own, recorded = found.groups()
    assert float(own) == pytest.approx(float(recorded) - main, abs=0.002)
    assert page.count("data:image/jpeg") == 4 and "class_" in page
    assert "24 files." in page and "progressive JPEG" in page
    assert "Nothing was done with the batches" in page


def test_nothing_of_the_loader_changes(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(4)
    loader = DataLoader(blobs(transform=train(24)), 5, True, num_workers=2, generator=generator)
    first = [list(loader), list(loader)]
    generator.manual_seed(4)
    again = DataLoader(blobs(transform=train(24)), 5, True, num_workers=2, generator=generator)
    again.report(tmp_path / "a.html", batches=2)
    got = [list(again)]
    states = torch.get_rng_state(), numpy_words().tolist()
    again.report(tmp_path / "b.html", batches=2)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == numpy_words().tolist()
    got.append(list(again))
    for ours, theirs in zip(got, first, strict=True):
        assert_same(ours, theirs)


def test_the_page_of_torchs_loader(tmp_path: Path) -> None:
    class Own(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            return torch.full((3, 8, 8), index / 6), index

    loader = DataLoader(Own(), 2)
    assert not loader.native
    loader.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "What the network sees" in headings(page) and "Files" not in headings(page)
    assert "their bytes are not known to headrace" in page
    counts = data_of(page)["progress"]["counts"]
    assert set(counts) == {2} and len(counts) % 3 == 0  # of whole epochs
    assert loader.upcoming_epoch == 0


def test_failed_samples_are_named(tmp_path: Path) -> None:
    data = [*pictures(6), truncated(pictures()[0])]
    for on_error in ("raise", "skip"):
        loader = DataLoader(EncodedImages(data, None, evaluation(24, 16)), 2, num_workers=1, on_error=on_error)
        loader.report(tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text()
        assert "Failed samples" in headings(page) and "image file is truncated" in page
        assert page.count("image file is truncated") == 1
    everything = DataLoader(EncodedImages(data[-1:], None, evaluation(24, 16)), 1, num_workers=1)
    everything.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert headings(page)[-2:] == ["Failed samples", "Loader and machine"] and "Files" not in headings(page)


def test_a_step_is_called_with_each_batch(tmp_path: Path) -> None:
    seen: list[Any] = []
    loader = DataLoader(blobs(12, transform=train(24)), 4, num_workers=1)
    loader.report(tmp_path / "r.html", step=seen.append)
    assert len(seen) % 3 == 0 and len(seen[0][0]) == 4
    assert "Nothing was done" not in (tmp_path / "r.html").read_text()
    loader = DataLoader(blobs(100, transform=train(24)), 4, num_workers=1)
    for _ in loader:
        time.sleep(0.005)  # long enough for a verdict
    loader.report(tmp_path / "r.html")
    assert "the newest epoch that this loader delivered" in (tmp_path / "r.html").read_text()


def test_unusable_arguments(tmp_path: Path) -> None:
    loader = DataLoader(blobs(4, transform=train(8)), 2)
    with pytest.raises(FileNotFoundError):
        loader.report(tmp_path / "no" / "r.html")
    with pytest.raises(ValueError, match="batches"):
        loader.report(tmp_path / "r.html", batches=0)
    assert not (tmp_path / "r.html").exists()
    with headrace.profile(), pytest.raises(RuntimeError, match="is recording"):
        loader.report(tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_text_is_escaped_and_nothing_is_requested() -> None:
    bad = "</script><img src=http://example.org/x onerror=alert(1)>"
    facts = Facts(bad, [(bad, bad)], [bad], explanation=bad, failed=[(bad, bad)], machine={bad: bad}, notes=[bad])
    facts.progress = Progress("samples", [0.1, 0.2, 0.3], [1, 1, 1])
    page = document(facts)
    assert "<img src=http" not in page and page.count("</script>") == 2
    assert data_of(page)["verdict"] == [bad]
    assert "default-src 'none'" in page
    asked: list[str] = []

    class Addresses(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            asked.extend(f"{tag} {value}" for name, value in attributes if name in ("src", "href", "srcset", "data"))

    Addresses().feed(page)
    assert asked == []


def test_a_page_without_facts_has_no_empty_sections() -> None:
    assert headings(document(Facts("nothing"))) == []


def test_pictures_are_the_bytes_that_the_values_were_made_from() -> None:
    flat = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(2, 3, 8, 8)

    def shown(batch: Any, lut: torch.Tensor | None = None) -> np.ndarray:
        found = sheet(batch, lut, ["a", "b"])
        data = base64.b64decode(found[0].address.partition(",")[2])
        return np.asarray(Image.open(BytesIO(data)).convert("RGB")).astype(int)

    expected = shown(flat)
    lut = torch.stack([(torch.arange(256) / 255 - m) / s for m, s in ((0.4, 0.2), (0.5, 0.3), (0.1, 0.9))])
    values = torch.stack([lut[c][flat[:, c].long()] for c in range(3)], 1)
    assert np.array_equal(shown([values, torch.tensor([0, 1])], lut), expected)
    assert np.array_equal(shown({"image": flat.float() / 255}), expected)
    captions = [one.caption for one in sheet([flat, torch.tensor([1, 7])], None, ["a", "b"])]
    assert captions == ["b", "7"]
    assert sheet([[flat, flat], ["x", "y"]], None, None)[1].caption == "y"  # views
    assert sheet(torch.zeros(3, 13, 4, 4), None, None) == [] and sheet({"tokens": torch.zeros(3)}, None, None) == []


def test_sizes_of_batches() -> None:
    images = torch.zeros(5, 3, 4, 4)
    for batch, size in (
        (images, 5),
        ([images, torch.zeros(5)], 5),
        ({"x": [images]}, 5),
        (torch.tensor(3), 1),
        ("a", 1),
    ):
        assert count_samples(batch) == size


def test_a_timeline_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(blobs(24, transform=train(16)), 4, num_workers=2)
    with headrace.profile() as recording:
        list(loader)
    whole = collect_spans(recording.threads)
    assert whole["left_out"] == 0
    total = sum(len(lane["spans"][0]) for lane in whole["lanes"])
    assert total == sum(len(one.stage) for one in recording.threads)
    assert whole["lanes"][0]["thread"] == "MainThread"
    monkeypatch.setattr("headrace._reports.html.timeline_data._MOST", 40)
    part = collect_spans(recording.threads)
    assert part["left_out"] == total - 40
    assert sum(len(lane["spans"][0]) for lane in part["lanes"]) in range(40, 45)  # spans may begin at one time


def test_the_page_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loader = DataLoader(blobs(24, transform=train(16)), 4, num_workers=2)
    with headrace.profile() as recording:
        list(loader)
    recording.export_chrome_trace(tmp_path / "t.json.gz")
    assert main(["report", "--profile", str(tmp_path / "t.json.gz"), "-o", str(tmp_path / "t.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 't.html'}\n"
    page = (tmp_path / "t.html").read_text()
    assert headings(page) == ["Verdict", "Speed", "Where the time goes", "Timeline", "Loader and machine"]
    told = {(one.thread, one.stage): one for one in facts_of(tmp_path / "t.json.gz").stages}
    for one in recording.summary():
        assert told[one.thread, one.stage].count == one.count
        assert told[one.thread, one.stage].self_s == pytest.approx(one.self_s, abs=1e-5)
    counts = data_of(page)["progress"]["counts"]
    assert set(counts) == {1} and len(counts) % 6 == 0
    (tmp_path / "other.json").write_text('{"traceEvents": []}')
    for name, message in (("other.json", "is not a trace"), ("missing.json", "No such file or directory")):
        assert main(["report", "--profile", str(tmp_path / name), "-o", str(tmp_path / "t.html")]) == 2
        out, err = capsys.readouterr()
        assert out == "" and message in err and err.count("\n") == 1


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_folder(tmp_path / "data", 12)
    out = tmp_path / "r.html"
    arguments = ["report", str(root), "-o", str(out), "--batch-size", "4", "--batches", "2", "--workers", "1"]
    assert main([*arguments, "--recipe", "Compose([Resize(16), CenterCrop(8), ToTensor()])"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert data_of(out.read_text())["progress"]["counts"] == [4, 4]
    for wrong, message in (
        (["report", str(tmp_path / "missing"), "-o", str(out)], "does not exist"),
        (["report", str(root), "-o", str(tmp_path / "no" / "r.html")], "cannot be written"),
        (["report", str(root), "-o", str(out), "--recipe", "Nonsense()"], "NameError"),
    ):
        assert main(wrong) == 2
        printed, errors = capsys.readouterr()
        assert printed == "" and message in errors and errors.count("\n") == 1


def test_marks_of_few_values() -> None:
    assert histogram("x", [], "kB") == "" and "median: 5," in histogram("x", [5.0], "kB")
    assert time_chart([0.1], [4], "images") == ""
    assert "<polyline" in time_chart([0.1, 0.2, 0.4], [4, 4, 4], "images")


def test_views_and_samples_have_a_page(tmp_path: Path) -> None:
    views = T.Views([train(16), train(16)])
    DataLoader(blobs(8, transform=views), 4, num_workers=1).report(Path(tmp_path / "v.html"))
    assert (tmp_path / "v.html").read_text().count("data:image/jpeg") == 4


def test_the_command_goes_on_without_broken_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_folder(tmp_path / "data", 12)
    for i in range(40):
        (root / "class_0" / f"zz{i:02}.jpg").write_bytes(truncated(pictures()[0]))
    out = tmp_path / "r.html"
    assert main(["report", str(root), "-o", str(out), "--batch-size", "4", "--workers", "1"]) == 0
    page = out.read_text()
    assert sum(data_of(page)["progress"]["counts"]) == 12
    assert page.count("image file is truncated") == 30 and "and 10 more; headrace doctor" in page


def test_a_dataset_of_broken_files_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    for number in range(6):
        (tmp_path / "data" / "a" / f"{number}.jpg").write_bytes(b"no image")
    out = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "data"), "-o", str(out), "--batch-size", "2", "--recipe", "train"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    page = out.read_text()
    assert "No batch could be made: 6 failed, with the reasons below." in page
    assert all(f"{number}.jpg" in page for number in range(6)) and "cannot identify image file" in page


def test_small_epochs_are_repeated_until_there_is_a_verdict(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    loader = DataLoader(ImageFolder(write_folder(tmp_path / "data", 12), train(32)), 6, num_workers=1)
    loader.report(out)
    page = out.read_text()
    assert "nothing yet" not in page and data_of(page)["verdict"][0].startswith("bottleneck: ")
    made = re.search(r"An epoch has few batches: (\d+) were made for the verdict", page)
    assert made is not None and 2 <= int(made[1]) <= 32
    assert sum(data_of(page)["progress"]["counts"]) == 12 * int(made[1])


def test_epochs_of_one_batch_have_no_verdict_but_a_speed(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    DataLoader(blobs(6, transform=train(16)), 6, num_workers=1).report(out)
    page = out.read_text()
    assert "nothing yet" not in page and re.match(r"[\d,]+ samples/s", data_of(page)["verdict"][0])
    assert "An epoch of one batch shows no bottleneck" in page


def test_rows_of_columns_have_a_page(tmp_path: Path) -> None:
    rows = headrace.Columns({"x": np.arange(60, dtype=np.float32).reshape(20, 3)})
    DataLoader(rows, 4, num_workers=1).report(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    counts = data_of(page)["progress"]["counts"]
    assert set(counts) == {4} and len(counts) % 5 == 0
    assert "What the network sees" not in headings(page)


def test_samples_without_batches_have_a_page(tmp_path: Path) -> None:
    DataLoader(blobs(6, transform=train(16)), None, num_workers=1).report(tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    counts = data_of(page)["progress"]["counts"]
    assert set(counts) == {1} and len(counts) % 6 == 0
    assert page.count("data:image/jpeg") == 1
