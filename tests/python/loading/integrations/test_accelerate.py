"""Accelerate prepares headrace's loader and keeps its threads, order, shards, gradient state, skips and states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from accelerate_programs import run
from support import WATCHDOG_S

pytestmark = pytest.mark.trainers


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
        # The order is the loader's own, of the seed that it has where it deals out.
        zero = labels_of(DataLoader(dataset, 4, shuffle=True, seed=0, world_size=1).reference())
        parts = told(labels_of(seedable.prepare(loader_of(seed=None, distributed=True))))
        assert parts == [zero[0::2][:5] + [zero[10] + zero[0][:2]], zero[1::2] + [zero[0][2:] + zero[1][:2]]]
        dist.barrier()
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


def test_states_are_of_the_loop_in_a_pass_and_of_the_loader_else(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
        whole = labels_of(loader_of())
        prepared = accelerator.prepare(loader_of())
        for _ in prepared:
            break  # a state of its one batch is left behind
        prepared.set_epoch(5)
        assert prepared.state_dict()["epoch"] == 5
        state = accelerator.prepare(loader_of()).state_dict()
        prepared.load_state_dict(state)
        assert prepared.state_dict()["epoch"] == 0
        assert labels_of(prepared) == whole
        assert prepared.state_dict()["epoch"] == 1
        # Batches that are skipped are behind, and those of the loop that skips.
        for taken in (1, 2, 8):
            one = accelerator.prepare(loader_of())
            for number, _ in enumerate(accelerator.skip_first_batches(one, 3), 1):
                if number == taken:
                    state = one.state_dict()
            assert one.state_dict()["epoch"] == 1
            other = accelerator.prepare(loader_of())
            other.load_state_dict(state)
            one.set_epoch(1)
            assert labels_of(other) == (whole[3 + taken:] or labels_of(one))
        """,
    )


def test_only_what_the_last_round_was_filled_up_with_is_cut_off(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        from headrace.sampler import AspectRatioBatchSampler
        accelerator = Accelerator()
        sizes = [(16, 24), (24, 16), (16, 16)]
        each = {size: transforms.Compose([transforms.ResizedCenterCrop(size), transforms.ToTensor()]) for size in sizes}
        paths = [path for path, _ in images.samples[:42]]
        various = headrace.ImageFiles(paths, list(range(42)), transforms.ByAspectRatio(each))
        by_ratio = loader_of(various, shuffle=None, batch_size=1, batch_sampler=AspectRatioBatchSampler(various, 4))
        for loader, expected in (
            (by_ratio, 42), (loader_of(drop_last=True), 40), (loader_of(shuffle=None, sampler=[3] * 11), 11)
        ):
            prepared = accelerator.prepare(loader)
            assert prepared.total_batch_size == 4
            assert len(torch.cat([accelerator.gather_for_metrics(labels) for _, labels in prepared])) == expected
        """,
    )


def test_a_prepared_loader_is_copied_used_in_others_and_given_up(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        import copy, gc, pickle, weakref
        accelerator = Accelerator()
        prepared = accelerator.prepare(loader_of())
        whole = labels_of(loader_of())
        for again in (copy.deepcopy(prepared), pickle.loads(pickle.dumps(prepared))):
            assert again.base_dataloader is not prepared.base_dataloader
            assert labels_of(again) == whole and again.iteration == 1 and prepared.iteration == 0
            assert vars(again.gradient_state) is vars(accelerator.gradient_state)  # one for all
            assert labels_of(accelerator.skip_first_batches(again, 3)) != whole[3:]  # of its next epoch
        stock = torch.utils.data.DataLoader
        assert labels_of(stock(prepared.dataset, 4)) == labels_of(stock(dataset, 4))
        assert labels_of(stock(Subset(prepared.dataset, [5, 1]), 2)) == [[5, 1]]
        class AtOnce(torch.utils.data.Dataset):
            def __len__(self): return 3
            def __getitem__(self, index): raise AssertionError("one by one")
            def __getitems__(self, indices): return [10 * index for index in indices]
        at_once = accelerator.prepare(loader_of(AtOnce(), shuffle=False, num_workers=0))
        assert [batch.tolist() for batch in stock(at_once.dataset, 3)] == [[0, 10, 20]]
        held = [weakref.ref(loader) for loader in (prepared, prepared.base_dataloader, again, again.base_dataloader)]
        gc.collect()
        gc.disable()  # what only it can end would keep its threads till then
        del prepared, again
        accelerator._dataloaders.clear()  # what free_memory does, apart from collecting
        assert [one() for one in held] == [None] * 4
        """,
    )


def test_loaders_without_batches_and_those_that_torch_delivers(folder: Path, tmp_path: Path) -> None:
    run(
        folder,
        tmp_path,
        """
        import warnings
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
        try:
            accelerator.prepare(loader_of(batch_size=None))
        except ValueError as error:
            assert "batch_size" in str(error)
        else:
            raise AssertionError("no error")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            handed = accelerator.prepare(loader_of(list(range(10)), shuffle=False, num_workers=0))
        assert [batch.tolist() for batch in handed] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        for batch in handed:
            accelerator.save_state(sys.argv[1] + "-saved")
            break
        accelerator.load_state(sys.argv[1] + "-saved")
        assert [batch.tolist() for batch in handed] == [[4, 5, 6, 7], [8, 9]]
        """,
    )


@pytest.mark.parametrize(
    "imports",
    [
        "import accelerate; import headrace",
        "import headrace; import accelerate",
        "import headrace; from headrace import transforms as T; made = loader(); import accelerate",
        "import headrace; from importlib import util; util.find_spec('accelerate.accelerator'); import accelerate",
    ],
    ids=["before", "after", "after a loader", "looked for, then imported"],
)
def test_when_accelerate_is_imported_does_not_matter(folder: Path, imports: str) -> None:
    """Nothing is imported for it, and no attribute that is read changes anything."""
    code = f"""
import sys

def loader():
    return headrace.DataLoader(headrace.ImageFolder({str(folder)!r}, T.Compose([T.CenterCrop(16), T.ToTensor()])), 4)

for line in {imports!r}.split("; "):
    if line == "import accelerate" and "util" not in globals():
        assert "accelerate" not in sys.modules
    exec(line)
from headrace import transforms as T
made = loader()
assert not hasattr(made, "_is_accelerate_prepared")
assert "headrace._loading.integrations.accelerate_prepare" not in sys.modules
prepared = accelerate.Accelerator().prepare(made)
assert type(prepared).__name__ == "PreparedLoader" and prepared.base_dataloader is made, type(prepared)
assert not [one for one in sys.meta_path if type(one).__module__.startswith("headrace")]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S)
    assert done.returncode == 0, done.stderr


def test_random_numbers_of_a_training_step_go_on_at_any_batch(folder: Path, tmp_path: Path) -> None:
    """A diffusion model draws noise in each step; Accelerate saves the generators when it saves the loader's state."""
    run(
        folder,
        tmp_path,
        """
        def train(seed, saved=None, begin=0):
            accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
            torch.manual_seed(1)
            loader = accelerator.prepare(loader_of(seed=seed))
            if saved is not None:
                torch.manual_seed(2)
                accelerator.load_state(saved)
            losses = []
            for epoch in range(begin // len(loader), 2):
                loader.set_epoch(epoch)
                for images, labels in loader:
                    losses.append((images.sum().item(), torch.rand(()).item()))
                    if saved is None:
                        accelerator.save_state(f"{sys.argv[1]}-{seed}-{len(losses)}")
            return losses
        for seed in (3, None):
            whole = train(seed)
            assert len(whole) == 22
            for taken in (1, 9, 10, 11, 12, 21):
                assert train(seed, f"{sys.argv[1]}-{seed}-{taken}", taken) == whole[taken:], (seed, taken)
        """,
    )
