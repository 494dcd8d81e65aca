"""Accelerate prepares headrace's loader without losing it: threads, order, shares, gradient state, skips and states."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from headrace.demo.folder import lay_out
from trainers import finish, needs, start

# In processes of their own: Accelerate keeps its state in classes. 42 samples: the last batch is not full.
BEGIN = """
import sys, torch
import headrace
from headrace import DataLoader, ImageFolder, transforms
from torch.utils.data import Subset
recipe = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
images = ImageFolder(sys.argv[1], recipe)
dataset = headrace.ImageFiles([path for path, _ in images.samples[:42]], list(range(42)), recipe)
def loader_of(data=dataset, **more):
    return DataLoader(data, **{"batch_size": 4, "shuffle": True, "num_workers": 1, "seed": 3, **more})
def labels_of(batches):
    return [batch[1].tolist() for batch in batches]
def same(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs) and ours
    for a, b in zip(ours, theirs):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
assert "accelerate" not in sys.modules
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("accelerate") / "set", files=60).train


def run(folder: Path, tmp_path: Path, program: str, ranks: int = 1) -> list[str]:
    """What a program prints that begins with BEGIN."""
    needs("accelerate")
    path = tmp_path / "program.py"
    path.write_text(BEGIN + textwrap.dedent(program))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks] if ranks > 1 else []
    return finish(start(*torchrun, path, folder))


def test_a_prepared_loader_delivers_natively_and_knows_its_last_batch(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        accelerator = Accelerator(gradient_accumulation_steps=4)
        loader, oracle = loader_of(), loader_of()
        prepared = accelerator.prepare(loader)
        assert isinstance(prepared, DataLoader) and prepared.base_dataloader is loader and prepared.native
        assert accelerator.prepare(prepared) is prepared  # once is enough
        assert len(prepared) == 11 and len(prepared.dataset) == 42 and prepared.total_batch_size == 4
        for epoch in range(3):
            steps, last, kept = [], [], []
            for batch in prepared:
                with accelerator.accumulate(torch.nn.Identity()):
                    steps.append(accelerator.sync_gradients)
                last.append(accelerator.gradient_state.end_of_dataloader)
                assert accelerator.gradient_state.remainder == 2
                kept.append(batch)
            same(kept, oracle.reference())
            oracle.set_epoch(epoch + 1)
            assert last == [False] * 10 + [True]
            assert steps == [number % 4 == 3 or number == 10 for number in range(11)]
            assert "decode" in str(loader.stats())
        prepared.set_epoch(1)
        oracle.set_epoch(1)
        same(prepared, oracle.reference())
        """,
    )


def test_skipped_batches_are_not_made_and_the_rest_is_the_same(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        import accelerate
        accelerator = Accelerator()
        loader, oracle = loader_of(), loader_of()
        prepared = accelerator.prepare(loader)
        whole = list(oracle.reference())
        rest = accelerator.skip_first_batches(prepared, 7)
        assert len(rest) == 4
        same(rest, whole[7:])
        made = {stage.name: stage.items for stage in loader.stats().stages}
        assert made["read"] == 42 - 7 * 4, made
        oracle.set_epoch(1)
        same(prepared, oracle.reference())  # the next epoch, and all of it
        rest = accelerate.skip_first_batches(prepared, 10)
        rest.set_epoch(0)
        same(rest, whole[10:])
        unseeded = accelerator.prepare(loader_of(seed=None))
        torch.manual_seed(5)
        expected = labels_of(unseeded)
        torch.manual_seed(5)
        unseeded.set_epoch(0)
        assert labels_of(accelerator.skip_first_batches(unseeded, 3)) == expected[3:]
        """,
    )


def test_states_resume_at_any_batch(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        configuration = DataLoaderConfiguration(use_stateful_dataloader=True)
        accelerator = Accelerator(dataloader_config=configuration)
        prepared = accelerator.prepare(loader_of())
        whole = list(prepared) + list(prepared)
        for taken in (1, 5, 10, 11, 12, 21):
            one = accelerator.prepare(loader_of())
            seen = 0
            for _ in range(2):
                for _ in one:
                    seen += 1
                    if seen == taken:
                        state = one.state_dict()
            other = accelerator.prepare(loader_of())
            other.load_state_dict(state)
            rest = list(other)
            while len(rest) < len(whole) - taken:
                rest += list(other)
            same(rest, whole[taken:])
        try:
            Accelerator().prepare(loader_of()).state_dict()
        except RuntimeError as error:
            assert "use_stateful_dataloader=True" in str(error)
        else:
            raise AssertionError("no error")
        """,
    )


def test_ranks_share_an_epoch_as_accelerate_has_it(folder: Path, tmp_path: Path) -> None:
    program = """
        import torch.distributed as dist
        def told(value):
            every = [None, None]
            dist.all_gather_object(every, value)
            return every
        early = loader_of()  # before there are ranks
        accelerator = Accelerator(cpu=True)
        alone = labels_of(DataLoader(dataset, 4, shuffle=True, seed=3, world_size=1).reference())
        for loader in (early, loader_of()):
            prepared = accelerator.prepare(loader)
            assert prepared.native and prepared.total_batch_size == 8 and len(prepared) == 6
            ours = labels_of(prepared)
            first, second = told(ours)
            # Batches in turn; what the last rounds lack comes from the beginning.
            assert first == alone[0::2] [:5] + [alone[10] + alone[0][:2]]
            assert second[:5] == alone[1::2] and len(second[5]) == 4
            assert labels_of(prepared) != ours
            prepared.set_epoch(0)
            assert labels_of(prepared) == ours
            prepared.set_epoch(0)
            assert labels_of(accelerator.skip_first_batches(prepared, 2)) == ours[2:]
        evaluation = accelerator.prepare(loader_of(shuffle=False))
        gathered = [accelerator.gather_for_metrics(labels) for _, labels in evaluation]
        assert torch.cat(gathered).tolist() == list(range(42))  # each once, though the ranks have 24 each
        from torch.utils.data import DistributedSampler
        given = accelerator.prepare(loader_of(shuffle=None, sampler=DistributedSampler(dataset)))
        assert sorted({label for part in told(labels_of(given)) for batch in part for label in batch}) == [*range(42)]
        split = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
        halves = told(labels_of(split.prepare(loader_of())))
        assert [a + b for a, b in zip(*halves)][:10] == alone[:10]
        even = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(even_batches=False))
        parts = told(labels_of(even.prepare(loader_of(batch_size=7))))
        assert sorted(label for part in parts for batch in part for label in batch) == [*range(42)]
        seedable = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
        parts = told(labels_of(seedable.prepare(loader_of(seed=None))))
        assert sorted({label for part in parts for batch in part for label in batch}) == [*range(42)]
        dist.destroy_process_group()
        """
    run(folder, tmp_path, program, ranks=2)


def test_what_cannot_be_kept_is_said_and_other_loaders_are_left_alone(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        from accelerate.data_loader import DataLoaderShard
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
        try:
            accelerator.prepare(loader_of())
        except ValueError as error:
            assert "dispatch_batches" in str(error)
        else:
            raise AssertionError("no error")
        accelerator = Accelerator()
        accelerator.prepare(loader_of())
        stock = accelerator.prepare(torch.utils.data.DataLoader(range(8), 2))
        assert type(stock) is DataLoaderShard and len(list(stock)) == 4
        handed = accelerator.prepare(loader_of(list(range(10)), shuffle=False, num_workers=0))
        assert [batch.tolist() for batch in handed] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        rest = accelerator.skip_first_batches(handed, 1)
        assert [batch.tolist() for batch in rest] == [[4, 5, 6, 7], [8, 9]]
        """,
    )
