"""Accelerate prepares a loader on the fallback as it prepares torch's own loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelerate_programs import run

pytestmark = pytest.mark.trainers

SAME = """
        import warnings
        from torch.utils.data import IterableDataset, TensorDataset
        class Stream(IterableDataset):
            def __iter__(self): return iter(range(11))
        def of(batches):
            return [batch[0].tolist() if isinstance(batch, list) else batch.tolist() for batch in batches]
        def runs(loader_type, data, prepare, **more):
            torch.manual_seed(3)
            accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(**prepare))
            loader = accelerator.prepare(loader_type(data, 4, **more))
            size = len(loader) if isinstance(data, TensorDataset) else 0
            seen = [type(loader).__name__, size, of(loader), of(loader)]
            seen.append(of(accelerator.skip_first_batches(loader, 1)))
            if prepare.get("use_stateful_dataloader"):
                for number, _ in enumerate(loader):
                    if number == 1:
                        state = loader.state_dict()
                        break
                again = accelerator.prepare(loader_type(data, 4, **more))
                again.load_state_dict(state)
                seen.append(of(again))
            return seen
"""


def test_the_same_prepared_loader_with_the_same_batches(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        SAME
        + """
        warnings.filterwarnings("ignore", message="'set_vital' is deprecated")
        import importlib.util
        ways = [{}, {"dispatch_batches": True}]
        if importlib.util.find_spec("torchdata"):
            ways.append({"use_stateful_dataloader": True})
        for data, more in ((TensorDataset(torch.arange(22)), {"shuffle": True}), (Stream(), {})):
            for way in ways:
                wanted, found = (runs(one, data, way, **more) for one in (torch.utils.data.DataLoader, DataLoader))
                assert found == wanted and len(found[2]) >= 3, (data, way, found, wanted)
        """,
    )


def test_an_order_that_is_dealt_out_already_is_dealt_out_once(folder: Path, tmp_path: Path) -> None:
    program = """
        import torch.distributed as dist
        from torch.utils.data import TensorDataset
        accelerator = Accelerator(cpu=True)
        data = TensorDataset(torch.arange(24))
        for distributed in (True, False):
            loader = DataLoader(data, 4, shuffle=True, distributed=distributed)
            assert loader._shards_itself is distributed and not loader.native
            prepared = accelerator.prepare(loader)
            assert type(prepared).__name__ == "DataLoaderShard"
            mine = torch.cat([batch for batch, in prepared])
            everybodys = [torch.empty(12, dtype=torch.int64) for _ in range(2)]
            dist.all_gather(everybodys, mine)
            assert sorted(torch.cat(everybodys).tolist()) == list(range(24))
        dist.barrier()
        dist.destroy_process_group()
        """
    run(folder, tmp_path, program, ranks=2)


def test_what_accelerate_would_leave_behind_is_kept_or_said(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        from torch.utils.data import IterableDataset, TensorDataset
        class Stream(IterableDataset):
            def __iter__(self): return iter(range(11))
        data = TensorDataset(torch.arange(10))
        double = lambda batch: [2 * part for part in batch]
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
        make = lambda: accelerator.prepare(DataLoader(data, 4, shuffle=True, seed=3, out_transform=double))
        prepared = make()
        whole = [batch.tolist() for batch, in DataLoader(data, 4, shuffle=True, seed=3, out_transform=double)]
        for number, (batch,) in enumerate(prepared):
            assert batch.tolist() == whole[number]
            if number == 0:
                state = prepared.state_dict()
        other = make()
        other.load_state_dict(state)
        assert [batch.tolist() for batch, in other] == whole[1:]
        loaded = DataLoader(data, 4)
        loaded.load_state_dict(loaded.state_dict())
        for loader, error, words in (
            (DataLoader(Stream(), 4, out_transform=double), ValueError, "drops out_transform"),
            (loaded, RuntimeError, "load the state after accelerator.prepare"),
        ):
            try:
                accelerator.prepare(loader)
            except error as raised:
                assert words in str(raised)
            else:
                raise AssertionError("no error")
        """,
    )
