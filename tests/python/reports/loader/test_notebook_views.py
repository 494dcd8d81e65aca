"""What a notebook shows of a loader and its reports: a line or the text, and tables whose values are escaped."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset

from headrace import DataLoader
from headrace import transforms as T
from support import blobs


class Numbers(Dataset[int]):
    def __len__(self) -> int:
        return 1200

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(4))


class Nameless(Numbers):
    def __len__(self) -> int:
        raise OSError("the server does not answer")


def test_a_loader_is_one_line() -> None:
    native = DataLoader(blobs(6, T.Compose([T.Resize((9, 9)), T.ToTensor()])), 4, num_workers=2)
    assert repr(native) == "DataLoader(EncodedImages of 6 samples, batch_size=4, native, 2 threads)"
    theirs = DataLoader(Numbers(), 4, num_workers=2)
    assert repr(theirs) == (
        "DataLoader(Numbers of 1,200 samples, batch_size=4, torch's workers with native pixels, 2 workers)"
    )
    here = DataLoader(Numbers(), None, deferred_images=False)
    assert repr(here) == "DataLoader(Numbers of 1,200 samples, single samples, torch in this process, 0 workers)"
    batches = DataLoader(Numbers(), batch_sampler=[[1, 2], [3]])
    assert "batch_sampler, torch in this process" in repr(batches)
    assert repr(DataLoader(Stream())).startswith("DataLoader(Stream, batch_size=1")
    assert repr(DataLoader(Nameless(), sampler=[0])).startswith("DataLoader(Nameless, batch_size=1")


@pytest.mark.parametrize("native", [True, False])
def test_reports_show_their_text_and_tables(native: bool) -> None:
    recipe = T.Compose([T.Resize((9, 9)), T.ToTensor()])
    loader: DataLoader[Any] = DataLoader(blobs(6, recipe) if native else Numbers(), 4)
    if native:
        report = loader.verify(1)
        assert repr(report) == str(report) and "0 differ" in report._repr_html_()
    next(iter(loader))
    stats, explanation = loader.stats(), loader.explain()
    assert repr(stats) == str(stats) and repr(explanation) == str(explanation)
    assert explanation._repr_html_().count("<tr>") == 1 + len(explanation.lines)
    assert stats._repr_html_().count("<tr>") == (1 + len(stats.stages) if stats.stages else 0)
    assert "bottleneck" in stats._repr_html_()
    html = loader._repr_html_()
    assert html.startswith("<p><code>DataLoader(") and "<table>" in html


def test_tables_name_what_programs_import() -> None:
    """No module of the package's inside, and no name of a function or of a rule."""
    recipe = T.Compose([T.RandomResizedCrop(9), T.ToTensor(), T.Normalize([0.5], [0.5])])
    said = str(DataLoader(blobs(6, recipe), 4).explain())
    assert "of headrace.EncodedImages\n" in said and "pass first" in said
    for internal in ("headrace.datasets.", "by_reduction", "tall_split", "horizontal_first", "a channel"):
        assert internal not in said
    theirs = str(DataLoader(Numbers(), 4).explain())
    assert "none was opened so far" in theirs and "0 of 0" not in theirs


def test_long_lines_are_wrapped() -> None:
    loader: DataLoader[Any] = DataLoader(Numbers(), 4)
    next(iter(loader))
    assert "white-space:pre-wrap" in loader.stats()._repr_html_()


def test_names_are_escaped() -> None:
    kind = type("<script>", (Numbers,), {})
    loader: DataLoader[Any] = DataLoader(kind(), 4)
    html = loader._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert torch.equal(next(iter(loader)), torch.arange(4))
