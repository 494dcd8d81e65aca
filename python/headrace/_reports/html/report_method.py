"""The loader's method that writes a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.checks import whole_number

if TYPE_CHECKING:
    from headrace._reports.html.batch_recording import Step


class Reports:
    """Mixed into the loader: its report."""

    def report(self, path: str | os.PathLike[str], *, batches: int = 100, step: Step | None = None) -> None:
        """Writes a page of HTML about this loader: verdict, speed over time, stages, timeline, pictures, files; and,
        where the ranks of a job publish, which one the others wait for.

        A copy of the loader makes the first batches of the next epoch; this loader's epochs, and the states of all
        random number generators that it knows, stay as they are. The page holds everything and loads nothing.

        Args:
            path: the file to write.
            batches: largest number of batches. Where an epoch has fewer, epochs are repeated until there is a verdict.
            step: called with each batch, in place of the training step. None: the batches are dropped, and the page
                shows the speed of the loader alone.

        Raises:
            OSError: the file cannot be written; nothing has been measured then.
            RuntimeError: a ``headrace.profile()`` is recording in this process.
            ValueError: `batches` is not positive.
        """
        from headrace._reports.html.document import document
        from headrace._reports.html.loader_facts import facts_of

        number, target = whole_number("batches", batches, smallest=1), Path(path)
        fresh = not target.exists()
        with target.open("a", encoding="utf-8"):
            pass
        try:
            page = document(facts_of(self, number, step))
        except BaseException:
            if fresh:
                target.unlink(missing_ok=True)
            raise
        target.write_text(page, encoding="utf-8")
