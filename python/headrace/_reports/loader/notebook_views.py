"""What a notebook shows of a loader and its reports: their text, or tables."""

from __future__ import annotations

import contextlib
from typing import Any

from headrace._reports.loader.markup import preformatted, text

_NAMES = {"native": "native", "deferred": "torch's workers with native pixels", "torch": "torch's workers"}


class NotebookView:
    """Mixed into reports: ``repr()`` is their text, and a notebook shows it as it is."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(self)


def describe(loader: Any) -> str:
    """Returns a loader on one line: its dataset, batch size, who delivers, and with how many threads."""
    dataset = type(loader.dataset).__name__
    with contextlib.suppress(Exception):  # streams; a method of the program's may raise anything
        dataset += f" of {len(loader.dataset):,} samples"
    batches = f"batch_size={loader.batch_size}"
    if loader.batch_size is None:
        batches = "single samples" if loader.batch_sampler is None else "batch_sampler"
    kind = "threads" if loader.native else "workers"
    delivered = _NAMES[loader.route] if loader.num_workers or loader.native else "torch in this process"
    return f"{type(loader).__name__}({dataset}, {batches}, {delivered}, {loader.num_workers} {kind})"


def describe_in_html(loader: Any) -> str:
    """Returns what `describe` does, and the table of ``explain()``."""
    return f"<p><code>{text(describe(loader))}</code></p>{loader.explain()._repr_html_()}"
