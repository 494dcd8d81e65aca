"""Tells a loader the epoch where Lightning goes on behind the end of one; to be imported by whoever uses Lightning.

    trainer = lightning.Trainer(callbacks=[headrace.integrations.lightning.RightEpoch()])

Lightning saves and loads the states of loaders by itself, and in the middle of an epoch that is all. But it makes the
first iterator of a run before it knows the epoch, and loads no state of one that was over.
"""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:  # under its older name
    from pytorch_lightning import Callback


class RightEpoch(Callback):  # type: ignore[misc]
    """Begins the first epoch of a resumed run again, with its own number, where Lightning began it with another."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Looks whether the iterators that Lightning has made are of the epoch that it goes on with."""
        fetcher = trainer.fit_loop._data_fetcher
        ours = [one for one in fetcher.combined_loader.flattened if getattr(one, "native", False)]
        late = [one for one in ours if one.state_dict()["epoch"] != trainer.current_epoch]
        for loader in late:
            loader.set_epoch(trainer.current_epoch)
        if late:
            iter(fetcher)
