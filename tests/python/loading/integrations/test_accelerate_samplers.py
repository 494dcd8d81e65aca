"""On two ranks Accelerate shards the loader's order and users' samplers, but not samplers that shard by themselves."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from accelerate_programs import run

pytestmark = pytest.mark.trainers

COMMON = """
import torch.distributed as dist
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler
from headrace import sampler as ours
def told(value):
    every = [None, None]
    dist.all_gather_object(every, value)
    return every
def given(sampler, **more):
    return loader_of(**{"shuffle": None, "sampler": sampler, **more})
def in_batches(batch_sampler, data=dataset, **more):
    return loader_of(data, shuffle=None, batch_size=1, batch_sampler=batch_sampler, **more)
def flat(parts):
    return [label for part in parts for batch in part for label in batch]
class Own(torch.utils.data.Sampler):
    def __init__(self, batches): self.batches = batches
    def __iter__(self): return iter(self.batches)
    def __len__(self): return len(self.batches)
"""


def on_two_ranks(folder: Path, tmp_path: Path, program: str) -> None:
    """Runs `COMMON` followed by `program` on two ranks."""
    run(folder, tmp_path, COMMON + textwrap.dedent(program), ranks=2)


def test_samplers_that_deal_out_are_left_alone(folder: Path, tmp_path: Path) -> None:
    on_two_ranks(
        folder,
        tmp_path,
        """
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
        class Backwards(ours.DistributedSampler):
            def __iter__(self): return iter(list(super().__iter__())[::-1])
        for make in (
            lambda: given(DistributedSampler(dataset, seed=4)),
            lambda: given(ours.DistributedSampler(dataset, seed=4)),
            lambda: given(ours.RepeatedAugment(dataset, seed=4)),
            lambda: given(ours.ShardedSampler(list(range(30)))),
            lambda: given(Backwards(dataset)),
            lambda: in_batches(BatchSampler(ours.DistributedSampler(dataset, seed=4), 4, False)),
            lambda: in_batches(ours.ShardedSampler(BatchSampler(range(32), 4, False))),
            lambda: loader_of(rank=accelerator.process_index, world_size=2),
        ):
            loader = make()
            prepared, alone = accelerator.prepare(loader), make()
            assert prepared.base_dataloader is loader and prepared.total_batch_size == 8
            expected = [batch for _, batch in alone]
            for (_, batch), theirs in zip(prepared, expected, strict=True):
                assert torch.equal(batch, theirs)
            prepared.set_epoch(0)
            gathered = [accelerator.gather_for_metrics(labels) for _, labels in prepared]
            assert sorted(torch.cat(gathered).tolist()) == sorted(flat(told([batch.tolist() for batch in expected])))
        # Copies of a sample are counted across the ranks: all are augmented as in one process.
        copies = [batch for batch, _ in accelerator.prepare(given(ours.ShardedSampler([7] * 16)))]
        alone = [batch for batch, _ in given([7] * 16, world_size=1)]
        sums = {image.sum().item() for batch in alone for image in batch}
        assert len(sums) > 1 and {one for part in told(sorted(
            {image.sum().item() for batch in copies for image in batch})) for one in part} == sums
        assert prepared.batch_sampler.even_batches is True
        prepared.batch_sampler.even_batches = False  # as join_uneven_inputs does, to all of them
        assert prepared.batch_sampler.even_batches is True
        prepared.load_state_dict(prepared.state_dict())
        """,
    )


def test_other_samplers_are_dealt_out_as_they_are(folder: Path, tmp_path: Path) -> None:
    on_two_ranks(
        folder,
        tmp_path,
        """
        stock, Weighted = torch.utils.data.DataLoader, torch.utils.data.WeightedRandomSampler
        for seedable in (False, True):
            configuration = DataLoaderConfiguration(use_seedable_sampler=seedable, use_stateful_dataloader=True)
            accelerator = Accelerator(cpu=True, dataloader_config=configuration)
            plain = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=seedable))
            for make in (
                lambda: RandomSampler(dataset, generator=torch.Generator().manual_seed(9)),
                lambda: RandomSampler(dataset, num_samples=12, generator=torch.Generator().manual_seed(9)),
                lambda: RandomSampler(dataset, True, 100, torch.Generator().manual_seed(9)),
                lambda: Weighted([1.0] * 42, 30, generator=torch.Generator().manual_seed(9)),
                lambda: list(range(41, 10, -1)),
            ):
                for prepared in (
                    accelerator.prepare(given(make())),
                    accelerator.prepare(in_batches(BatchSampler(make(), 4, False))),
                ):
                    theirs = plain.prepare(stock(list(range(42)), 4, sampler=make()))
                    for epoch in range(2):
                        assert labels_of(prepared) == [batch.tolist() for batch in theirs]
                # A state of the second epoch, in which the generators have moved.
                one, other = accelerator.prepare(given(make())), accelerator.prepare(given(make()))
                labels_of(one)
                seen = []
                for number, (_, labels) in enumerate(one):
                    seen.append(labels.tolist())
                    if number == 0:
                        state = one.state_dict()
                other.load_state_dict(state)
                assert labels_of(other) == seen[1:]
            # What was filled up is cut off, by the length of the sampler.
            short = accelerator.prepare(given(list(range(30))))
            gathered = [accelerator.gather_for_metrics(labels) for _, labels in short]
            assert torch.cat(gathered).tolist() == list(range(30))
        """,
    )


def test_batches_of_the_users_own_making_stay_whole_and_none_is_lost(folder: Path, tmp_path: Path) -> None:
    on_two_ranks(
        folder,
        tmp_path,
        """
        accelerator = Accelerator(cpu=True)
        sizes = [(16, 24), (24, 16), (16, 16)]
        each = {size: transforms.Compose([transforms.ResizedCenterCrop(size), transforms.ToTensor()]) for size in sizes}
        paths = [path for path, _ in images.samples[:42]]
        various = headrace.ImageFiles(paths, list(range(42)), transforms.ByAspectRatio(each))
        batches = lambda: ours.AspectRatioBatchSampler(various, 4, seed=2)
        for epoch, make in ((0, batches), (1, batches), (0, lambda: Own([[1, 2, 3], [4], [5, 6]]))):
            data = various if make is batches else dataset
            whole = make()
            if hasattr(whole, "set_epoch"):
                whole.set_epoch(epoch)
            whole = [list(batch) for batch in whole]
            prepared = accelerator.prepare(in_batches(make(), data))
            prepared.set_epoch(epoch)
            gathered, mine = [], []
            for _, labels in prepared:
                mine.append(labels.tolist())
                assert accelerator.gradient_state.remainder == 0
            even = whole + whole[:len(whole) % 2]
            assert told(mine) == [even[0::2], even[1::2]]
            assert len(prepared) == len(even) // 2
        assert accelerator.prepare(in_batches(batches(), various)).total_batch_size == 8
        split = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
        try:
            split.prepare(in_batches(batches(), various))
        except ValueError as error:
            assert "split_batches cannot split the batches of AspectRatioBatchSampler" in str(error)
        else:
            raise AssertionError("no error")
        """,
    )


def test_processes_of_one_model_part_are_given_the_same(folder: Path, tmp_path: Path) -> None:
    on_two_ranks(
        folder,
        tmp_path,
        """
        import accelerate.accelerator
        Accelerator(cpu=True).prepare(loader_of())
        class Mesh:  # what Accelerate asks of one; torch's own, over gloo, may abort the process at its end
            mesh_dim_names = ("tp",)
            def __getitem__(self, name): return self
            def size(self): return 2
        def prepare(loader):
            return accelerate.accelerator.prepare_data_loader(loader, torch_device_mesh=Mesh())
        alone = labels_of(DataLoader(dataset, 4, shuffle=True, seed=3, world_size=1).reference())
        assert labels_of(prepare(loader_of())) == alone
        assert labels_of(prepare(in_batches(Own([[1, 2, 3], [4], [5, 6]])))) == [[1, 2, 3], [4], [5, 6]]
        halves = told(labels_of(prepare(given(DistributedSampler(dataset, shuffle=False)))))
        assert flat(halves[:1]) == list(range(0, 42, 2)) and flat(halves[1:]) == list(range(1, 42, 2))
        """,
    )


def test_a_state_loaded_too_early_is_not_forgotten_without_a_word(folder: Path, tmp_path: Path) -> None:
    on_two_ranks(
        folder,
        tmp_path,
        """
        accelerator = Accelerator(cpu=True)
        loader = loader_of()
        next(iter(loader))
        loader.load_state_dict(loader.state_dict())
        try:
            accelerator.prepare(loader)
        except RuntimeError as error:
            assert "load the state after accelerator.prepare" in str(error)
        else:
            raise AssertionError("no error")
        loader.set_epoch(1)  # which gives that state up
        assert accelerator.prepare(loader).iteration == 1
        """,
    )
