"""Runs every Python snippet of README.md and of the pages in docs, in a folder with the files that they use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from bench import bars
from bench.code import page as figures

from audio_files import make_wav
from torchvision_shim import import_torchvision
from video_files import INDEXED, make_video, why_no_torchcodec

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("docs", "docs/getting-started", "docs/recipes")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.md")))]
SNIPPETS = [
    (page.name, snippet)
    for page in PAGES
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
]


def test_there_are_snippets() -> None:
    assert {"README.md", "datasets.md"} <= {page for page, _ in SNIPPETS} and len(SNIPPETS) >= 3


@pytest.mark.parametrize(("page", "snippet"), SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet_runs(page: str, snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = sorted((ROOT / "python/headrace/_cli/demo/photos").glob("*.jpg"))
    for i in range(70):
        folder = tmp_path / "train" / ("even" if i % 2 == 0 else "odd")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(photos[i % len(photos)], folder / f"{i}.jpg")
    if page in ("videos.md", "video-models.md"):
        pytest.importorskip("av", exc_type=ImportError)
        if (reason := why_no_torchcodec()) is not None:
            pytest.skip(reason)
        import_torchvision()
        (tmp_path / "videos").mkdir()
        for name in ("x264.mp4", "open_groups.mp4", "ntsc.mp4", "with_sound.mp4"):
            make_video(tmp_path / "videos" / name, *INDEXED[name])
    if page in ("audio.md", "whisper.md"):
        if why_no_torchcodec() is not None:
            pytest.skip(str(why_no_torchcodec()))
        (tmp_path / "sounds").mkdir()
        for i in range(40):
            (tmp_path / "sounds" / f"{i}.wav").write_bytes(make_wav("s16", 16000 + 4000 * i))
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, page, "exec"), {})


def test_figures_of_code_are_those_that_were_measured() -> None:
    for path, text in figures.pages(figures.figures()).items():
        assert path.read_text() == text, f"{path.name}: run python -m bench.code.page"


def test_the_chart_is_of_the_run() -> None:
    for path, text in bars.files().items():
        assert path.read_text() == text, f"{path.name}: run python -m bench.bars"
    chart = re.search(r'<img src="docs/assets/one-core-light.svg".* alt="([^"]*)"', (ROOT / "README.md").read_text())
    assert chart is not None
    assert re.findall(r"[\d,]*\d", chart[1]) == [f"{rate:,.0f}" for rate in bars.medians().values()]


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 900
    assert text[: text.index("## Install")].count("\n") < 25


def test_results_begin_with_a_verdict() -> None:
    for page in sorted((ROOT / "bench/results").glob("*.md")):
        title, verdict, _ = page.read_text().split("\n\n", 2)
        assert re.fullmatch(r"# [A-Za-z][^\n]+", title), page.name
        assert re.fullmatch(r"[A-Z][^\n|]+\.", verdict), f"{page.name}: no sentence in plain words below the title"


def test_a_row_that_a_page_lacks_is_an_error() -> None:
    found = {f"train, {cores}": {"seconds": [[3.0, 1.0]], "memory": [1, 1]} for cores in (1, 2)}
    assert figures.filled("| mine | 1 (2) | 1 (2) |\n", {"mine": "train"}, found) == (
        "| mine | 3.00 (3.00 to 3.00) | 3.00 (3.00 to 3.00) |\n"
    )
    with pytest.raises(ValueError, match="0 rows of the page begin with 'other'"):
        figures.filled("| mine | 1 (2) | 1 (2) |\n", {"other": "train"}, found)
