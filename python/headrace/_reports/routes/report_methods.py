"""The loader's methods that prove and explain what it does. Each imports what it needs: most programs call none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader as TorchDataLoader

if TYPE_CHECKING:
    from headrace._loading.routes.route import Loader
    from headrace._reports.loader import explanation, stats, verification
    from headrace._reports.loader.headroom import HeadroomLoop


class Insight:
    """Mixed into the loader: proof, explanation, statistics."""

    def _publish_epoch(self: Loader) -> bool:
        """Notifies the publisher that an epoch starts; returns whether one is active. Else looks up two names."""
        if "headrace._reports.metrics.publish" not in sys.modules and not os.environ.get("HEADRACE_PUBLISH"):
            return False
        from headrace._reports.metrics import publish

        return publish.epoch_begins(self)

    def reference(self: Loader) -> TorchDataLoader[Any]:
        """Returns the oracle: a torch DataLoader over Pillow that delivers the batches of the next ``iter(loader)``.

        Raises:
            RuntimeError: torch delivers this loader's batches.
        """
        from headrace._reports.routes import reports_by_route

        route = self._native_route("reference()")
        return reports_by_route.reference_loader(self._settings(), route, self._epochs.peek())

    def verify(self: Loader, n: int = 4) -> verification.Report:
        """Compares the first `n` batches of the next epoch with the oracle's, bit for bit. The loader's state is kept.

        Returns:
            A report with the counts of what was compared; print it.

        Raises:
            VerificationError: the batches differ; the message names the first sample that does.
            RuntimeError: torch delivers this loader's batches.
            ValueError: `n` is not a positive int.
        """
        from headrace._reports.loader import verification
        from headrace._reports.routes import reports_by_route

        route, settings = self._native_route("verify()"), self._settings()
        verification.check_count(n)
        engine = route.new_engine(settings, slots_kept=2)
        return reports_by_route.verify(settings, route, self._epochs.peek(n), engine)

    def __repr__(self) -> str:
        from headrace._reports.loader import notebook_views

        return notebook_views.describe(self)

    def _repr_html_(self) -> str:
        from headrace._reports.loader import notebook_views

        return notebook_views.describe_in_html(self)

    def explain(self: Loader, verbose: bool = False) -> explanation.Explanation:
        """Returns a table of what runs natively, what runs in Python, and why; print it.

        Args:
            verbose: views of equal transforms have lines of their own, and steps the numbers of the draws that they
                read. False: such views are described once.
        """
        from headrace._reports.routes import reports_by_route

        route = self._renewed_route()
        deferred = self._torch_epochs.images if self.route == "deferred" else None
        return reports_by_route.explain(self._settings(), route, deferred, verbose)

    def _stats(self: Loader, judged: bool) -> stats.Stats:
        """Returns the statistics. `judged`: with the judgement of their verdict, which takes most of the time."""
        from headrace._reports.routes import reports_by_route

        return reports_by_route.collect(self, judged)

    def stats(self: Loader) -> stats.Stats:
        """Returns the times of the newest epoch's stages, steps and waits, and a verdict on them; print it."""
        found: stats.Stats = self._stats(judged=True)
        return found

    def headroom(self: Loader, batches: int = 50) -> HeadroomLoop:
        """Returns an iterator that tells how much faster the loop around it would be with a perfect loader.

        It begins an epoch and yields `batches` of its batches, then as many that are ready: the newest ones again. Run
        the training step on each, with a copy of the model, and print the iterator's ``result`` after the loop.
        Raises ValueError if `batches` is no int from 4 up, and RuntimeError if the epoch has fewer batches.
        """
        from headrace._reports.loader.headroom import HeadroomLoop

        return HeadroomLoop(self, batches)
