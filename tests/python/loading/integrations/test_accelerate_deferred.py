"""What Accelerate makes of a deferred loader keeps its native pixels, and delivers what it makes of torch's loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelerate_programs import run

pytestmark = pytest.mark.trainers

BOTH = """
        import importlib.util, pickle, random, warnings
        import accelerate
        from PIL import Image
        from torch.utils.data import Dataset, IterableDataset
        warnings.simplefilter("ignore")
        paths = [path for path, _ in images.samples]

        class Own(Dataset):
            def __len__(self):
                return 45
            def __getitem__(self, index):
                image = recipe(Image.open(paths[index % len(paths)]).convert("RGB"))
                deferred = int(Image.OPEN["JPEG"][0].__module__.startswith("headrace."))  # what opens JPEG files
                return {"image": image, "index": index, "deferred": deferred}

        class Stream(IterableDataset):
            def __iter__(self):
                return map(Own().__getitem__, range(45))

        def seen(kind, data, way, workers, skips=True, **more):
            torch.manual_seed(3); random.seed(1)
            accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**way))
            if more.pop("seeded", False):
                more["generator"] = torch.Generator().manual_seed(4)
            loader = accelerator.prepare(kind(data, 4, num_workers=workers, **more))
            assert isinstance(loader, torch.utils.data.DataLoader)
            found, deferred = [type(loader).__name__], set()
            def take(loader):
                for batch in loader:
                    deferred.update(batch["deferred"].tolist())
                    found.append((batch["image"], batch["index"]))
                found.append("end")
            take(loader), take(loader)
            if skips:
                take(accelerate.skip_first_batches(loader, 2))
                take(accelerate.skip_first_batches(accelerate.skip_first_batches(loader, 2), 1))
            loader.set_epoch(7)
            take(loader)
            if way.get("even_batches", True):  # otherwise the ranks' batches differ in size, which gloo cannot gather
                for batch in loader:
                    found.append(accelerator.gather_for_metrics(batch["index"]))
            if isinstance(data, Own):
                found += [len(loader), loader.total_dataset_length]
            if isinstance(data, Own) and not way.get("dispatch_batches"):
                found.append(loader.total_batch_size)
                if not way.get("use_stateful_dataloader") and "persistent_workers" not in more:
                    take(pickle.loads(pickle.dumps(loader)))
            if way.get("use_stateful_dataloader") and isinstance(data, Own):
                for number, batch in enumerate(loader):
                    if number == 1:
                        state = loader.state_dict()
                        break
                again = accelerator.prepare(kind(data, 4, num_workers=workers, **more))
                again.load_state_dict(state)
                take(again)
            found.append(torch.rand(3))
            return found, deferred, getattr(loader, "route", None)

        def equal(a, b):
            if isinstance(a, (list, tuple)):
                return len(a) == len(b) and all(map(equal, a, b))
            return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b

        def check(data, way, workers, **more):
            wanted, theirs, _ = seen(torch.utils.data.DataLoader, data, way, workers, **more)
            found, ours, route = seen(DataLoader, data, way, workers, **more)
            what = (type(data).__name__, way, workers, more)
            assert equal(found, wanted), what
            stateful = "use_stateful_dataloader" in way
            assert theirs == {0} and (stateful or route == "deferred"), what
            assert ours == ({0} if stateful and not workers else {1}), what

        stateful = [{"use_stateful_dataloader": True}] if importlib.util.find_spec("torchdata") else []
"""


WAYS = "{}, {'use_seedable_sampler': True}, {'split_batches': True}, {'non_blocking': True}, *stateful"


@pytest.mark.parametrize("workers", [0, 2])
def test_one_process(folder: Path, tmp_path: Path, workers: int) -> None:
    run(folder, tmp_path, f"{BOTH}\n        for way in [{WAYS}]: check(Own(), way, {workers}, shuffle=True)\n")


@pytest.mark.parametrize("workers", [0, 2])
def test_other_arguments(folder: Path, tmp_path: Path, workers: int) -> None:
    program = f"""
        workers = {workers}
        check(Own(), {{}}, workers, drop_last=True)
        check(Own(), {{}}, workers, shuffle=True, seeded=True)
        check(Own(), {{}}, workers, persistent_workers=workers > 0, skips=False)
        """
    run(folder, tmp_path, BOTH + program)


def test_streams(folder: Path, tmp_path: Path) -> None:
    program = """
        for way in ({}, {'dispatch_batches': True}, {'dispatch_batches': False}):
            for workers in (0, 2):
                check(Stream(), way, workers)
        """
    run(folder, tmp_path, BOTH + program)


RANKS = """
        import torch.distributed as dist
{}
        dist.barrier()
        dist.destroy_process_group()
        """


CALLS = {
    "Own": [
        "check(Own(), {}, 1, shuffle=True)",
        "check(Own(), {'use_seedable_sampler': True}, 1, shuffle=True)",
        "check(Own(), {'split_batches': True}, 0, drop_last=True)",
        "check(Own(), {'even_batches': False}, 0, shuffle=True, skips=False)",
        "check(Own(), {'dispatch_batches': True}, 1, shuffle=True, skips=False)",
    ],
    "Stream": [
        "check(Stream(), {}, 1, skips=False)",
        "check(Stream(), {'dispatch_batches': False}, 1, skips=False)",
        "check(Stream(), {'dispatch_batches': False, 'split_batches': True}, 0, skips=False)",
    ],
}


@pytest.mark.parametrize("data", CALLS)
def test_two_processes(folder: Path, tmp_path: Path, data: str) -> None:
    calls = "\n".join(f"        {call}" for call in CALLS[data])
    run(folder, tmp_path, BOTH + RANKS.format(calls), ranks=2)


def test_what_is_not_headraces_is_left_alone(folder: Path, tmp_path: Path) -> None:
    program = """
        accelerator = Accelerator(cpu=True)
        data = Own()
        ours, theirs = accelerator.prepare(DataLoader(data, 4), torch.utils.data.DataLoader(data, 4))
        kinds = [type(one.base_dataloader) for one in (ours, theirs)]
        assert kinds == [DataLoader, torch.utils.data.DataLoader]
        skipping = [type(accelerate.skip_first_batches(one, 1).base_dataloader) for one in (ours, theirs)]
        assert skipping == kinds
        plain = accelerator.prepare(DataLoader(data, 4, deferred_images=False))
        assert type(plain.base_dataloader) is torch.utils.data.DataLoader
        # What headrace says of a loader can be asked of the prepared one.
        assert ours.route == "deferred" and "torch" in str(ours.explain())
        assert not hasattr(theirs, "route")
        # Without torchdata's loader there are no states, as with torch's: none is made with each batch.
        asked = []
        DataLoader.state_dict = lambda self: asked.append(1) or {}
        assert len(list(ours)) == 12 and not asked
        """
    run(folder, tmp_path, BOTH + program)
