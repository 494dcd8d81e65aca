"""Programs that `python -m fuzz.programs` once found: they see the same with torch's loader and with headrace's."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torchvision") is None:
    pytest.skip("programs use torchvision's datasets", allow_module_level=True)

from fuzz.programs.trial import of_text

_FOLDER = "base = data = datasets.ImageFolder(folder('same'), V.Compose([V.Resize((8, 8)), V.ToTensor()]))\n"
_LOADER = "loader = Loader(data, batch_size=4)\n"
_EPOCH = "see.epoch(loader)\n"
_VARYING = "base = data = headrace.ImageFiles(paths('plain'), list(range(12)), V.PILToTensor())\n"
_NORMALISED = "V.Compose([V.Resize((8, 8)), V.ToTensor(), V.Normalize((0.5,), (0.25,))])"
_HALVES = "batches = iter(loader)\nsee.take(batches, 1)\n{}\nsee.take(batches)\n"
_OWN = "base = data = Opens(paths('same'), list(range(12)), V.Compose([V.Resize((8, 8)), V.ToTensor()]))\n"


def loaded(arguments: str, actions: str = _EPOCH) -> str:
    """A program whose loader has these arguments."""
    return f"{_FOLDER}loader = Loader(data, {arguments})\n{actions}"


def stateful(definition: str, text: str = "step") -> str:
    """A program whose transform has one more step."""
    return f"{definition}\n{_FOLDER}base.transform.transforms.append({text})\n{_LOADER}{_EPOCH}"


def changed(change: str, before: str = "") -> str:
    """A program whose dataset changes between two epochs."""
    return f"{_FOLDER}{before}{_LOADER}{_EPOCH}{change}\n{_EPOCH}"


def labelled(labels: str, kind: str = "cifar") -> str:
    """A program whose labels are given."""
    return f"base = data = {kind}({labels}, V.Compose([V.Resize((8, 8)), V.ToTensor()]))\n{_LOADER}{_EPOCH}"


PROGRAMS = {
    "a collate_fn returns None": loaded("batch_size=5, collate_fn=lambda samples: None"),
    "some batches are None": loaded("collate_fn=lambda samples: None if samples[0][1] == 1 else len(samples)"),
    "batches are None, with workers": loaded("batch_size=5, num_workers=1, collate_fn=lambda samples: None"),
    "a list of indices without batch_size": loaded("None, sampler=[[0, 1], [2]]"),
    "a tuple of indices without batch_size": loaded("None, sampler=[(0, 1)]"),
    "a number as a batch": loaded("batch_sampler=[[0, 1], 2]"),
    "arrays as batches": loaded("batch_sampler=[np.array([0, 1]), np.array([5])]"),
    "iter() alone": loaded("shuffle=True", "batches = iter(loader)\n"),
    "two iterators": loaded("shuffle=True", "see.pairs(loader, loader)\n"),
    "a seed after iter()": loaded("4, True", "batches = iter(loader)\ntorch.manual_seed(0)\nsee.take(batches)\n"),
    "a lazy sampler": loaded("2, sampler=Unsized(7)", _HALVES.format("torch.rand(1)")),
    "a lazy sampler, with workers": loaded(
        "2, sampler=Unsized(9, 'python'), num_workers=1", _HALVES.format("random.random()")
    ),
    "an endless sampler, with workers": loaded("4, sampler=Unsized(None), num_workers=2", "see.epoch(loader, 1)\n"),
    "a sampler that raises, with workers": loaded("2, sampler=Failing(3, KeyError('boom')), num_workers=2"),
    "weights that the loop changes": "sampler = Unsized(9, 'weights')\n"
    + loaded("2, sampler=sampler", _HALVES.format("sampler.weights[5] = 50.0")),
    "labels in place": changed("base.samples[1] = (base.samples[1][0], 7)"),
    "samples that are replaced": changed("base.samples = [(path, 5) for path, _ in base.samples]"),
    "a list that grows": changed("base.samples.append(base.samples[0])"),
    "a list that shrinks": changed("del base.samples[5:]"),
    "indices in place": changed("data.indices[0] = 7", "data = Subset(data, [3, 1, 2])\n"),
    "indices that grow": changed("data.indices.append(5)", "data = Subset(data, [3, 1, 2])\n"),
    "a part of a ConcatDataset": changed(
        "data.datasets[1] = Subset(base, [5, 6])", "data = ConcatDataset([data, data])\n"
    ),
    "a class that is replaced": changed("base.__class__ = NegatedFolder"),
    "a change within an epoch": loaded("4", _HALVES.format("base.samples.reverse()")),
    "a transform that changes within an epoch": loaded(
        "4", _HALVES.format("base.transform = V.Compose([V.Resize((8, 8)), V.PILToTensor()])")
    ),
    "a transform's attribute that changes within an epoch": loaded(
        "4", _HALVES.format("base.transform.transforms[0].size = (6, 6)")
    ),
    "the order of transforms that changes within an epoch": loaded(
        "4", _HALVES.format("base.transform.transforms.append(V.Normalize((0.5,), (0.25,)))")
    ),
    "a subclass of tensors of bytes": "base = data = datasets.ImageFolder(folder('same'), "
    f"V.Compose([V.Resize((8, 8)), V2.ToImage(), lambda x: x.as_subclass(Mine)]))\n{_LOADER}{_EPOCH}",
    "a subclass of tensors": stateful("step = lambda x: x.as_subclass(Mine)"),
    "a BaseException of every image": stateful("step = Raises('CancelledError')"),
    "a batch size that changes before the first batch": "sampler = Unsized(9, 'numpy')\n"
    + loaded("sampler=sampler", "batches = iter(loader)\nloader.batch_sampler.batch_size = 5\nsee.take(batches, 2)"),
    "a batch size that changes within an epoch": loaded(
        "2, shuffle=True", _HALVES.format("loader.batch_sampler.batch_size = 5")
    ),
    "a batch size that changes, with workers": loaded(
        "1, num_workers=1", _HALVES.format("loader.batch_sampler.batch_size = 3")
    ),
    "whole batches whose size changes": loaded(
        "2, drop_last=True", _HALVES.format("loader.batch_sampler.batch_size = 5")
    ),
    "a step of a field that reads the metadata of a Subset's images": "base = data = headrace.Fields({'image': "
    "headrace.ImageFiles(paths('same'), None, V.Compose([lambda x: copy.deepcopy(x), V.Resize((8, 8)), V.ToTensor()])),"
    " 'n': torch.arange(12)})\ndata = Subset(data, [6, 3, 3, 1])\n" + _LOADER + _EPOCH,
    "a step that counts, and a file that fails": "step = Counter()\n"
    "base = data = datasets.ImageFolder(folder('broken'), V.Compose([V.Resize((8, 8)), V.ToTensor(), step]))\n"
    f"{_LOADER}see.take(iter(loader))\nsee.take(iter(loader))\nsee(step.calls)",
    "a collate_fn that changes, with persistent workers": loaded(
        "num_workers=2, persistent_workers=True", f"{_EPOCH}loader.collate_fn = len\n{_EPOCH}"
    ),
    "a collate_fn that changes, with workers": loaded("num_workers=2", f"{_EPOCH}loader.collate_fn = len\n{_EPOCH}"),
    "int16 labels": labelled("np.arange(12, dtype=np.int16)"),
    "uint64 labels": labelled("np.arange(12, dtype=np.uint64)"),
    "float16 labels of MNIST": labelled("np.arange(12, dtype=np.float16)", "mnist"),
    "float labels of MNIST": labelled("torch.arange(12.0)", "mnist"),
    "bool labels of MNIST": labelled("[True, False] * 6", "mnist"),
    "a counter": stateful("step = Counter()"),
    "a generator": stateful("step = of_numpy()"),
    "a generator in a global": stateful("RNG = random.Random(3)\ndef step(x): return shifted(x, RNG.random())"),
    "a global number": stateful(
        "CALLS = 0\ndef step(x):\n    global CALLS\n    CALLS += 1\n    return shifted(x, CALLS / 9)"
    ),
    "an attribute of a function": stateful(
        "def step(x):\n    step.calls = getattr(step, 'calls', 0) + 1\n    return shifted(x, step.calls / 9)"
    ),
    "an attribute of a class": stateful("step = Shared()"),
    "an iterator": stateful("NUMBERS = itertools.cycle([0.25, 0.5])\nstep = lambda x: shifted(x, next(NUMBERS))"),
    "an iterator whose period is odd": stateful(
        "NUMBERS = itertools.cycle([0.25, 0.5, 0.125])\nstep = lambda x: shifted(x, next(NUMBERS))"
    ),
    "a default argument": stateful("def step(x, seen=[]):\n    seen.append(1)\n    return shifted(x, len(seen) / 9)"),
    "a counter in a Lambda": stateful("step = V.Lambda(Counter())"),
    "a counter in a module": stateful("step = torch.nn.Sequential(Module())"),
    "a target_transform of the same object": f"step = Held(random.Random(3), lambda g: g.random())\n{_FOLDER}"
    f"base.transform.transforms.append(step)\nbase.target_transform = step.label\n{_LOADER}{_EPOCH}",
    "pil_loader": changed("see.patch(datasets.folder, 'pil_loader', lambda path: red())"),
    "Image.convert": changed("see.around(Image.Image, 'convert', negated)"),
    "functional.resize": changed("see.patch(F, 'resize', lambda image, *a, **k: red((8, 8)))"),
    "Compose.__call__": changed("see.around(V.Compose, '__call__', halved)"),
    "ImageFolder.__getitem__": changed("see.around(datasets.DatasetFolder, '__getitem__', relabelled)"),
    "ConcatDataset.__getitem__": changed(
        "see.around(ConcatDataset, '__getitem__', first)", "data = ConcatDataset([data, data])\n"
    ),
    "__getitems__ of the object": changed("base.__getitems__ = lambda indices: [base[i] for i in reversed(indices)]"),
    "Image.resize of a deferred image": f"{_OWN}{_LOADER}see.around(Image.Image, 'resize', turned)\n{_EPOCH}",
    "default_collate_fn_map": changed(
        "see.put(default_collate_fn_map, int, lambda batch, *, collate_fn_map=None: ('ints', batch))"
    ),
    "torch.stack": changed("see.patch(torch, 'stack', lambda tensors, *a, **k: len(tensors))"),
    "torch.Tensor.permute": changed("see.patch(torch.Tensor, 'permute', lambda tensor, *a, **k: torch.zeros(3, 2, 2))"),
    "a result that requires gradients": stateful("step = lambda x: x.requires_grad_()"),
    "a label that raises after a step that counts": "sampler = iter([0, 1, 2, 3, 4])\n"
    f"{_FOLDER}base.transform.transforms.insert(1, InPlaceArray())\n"
    "base.target_transform = RaisesAt('CalledProcessError', 0)\n"
    "loader = Loader(data, sampler=sampler, batch_size=2)\n"
    "batches = iter(loader)\nsee.take(batches)\nsee.epoch(loader)",
    "a label's MemoryError": f"{_FOLDER}base.target_transform = RaisesAt('MemoryError', 1)\n"
    "loader = Loader(data, shuffle=True)\nsee.take(iter(loader), 9)",
    "a label that raises before an image": f"{_FOLDER}base.transform.transforms.insert(1, Raises('OSError'))\n"
    "base.target_transform = RaisesAt('KeyError', 0)\nloader = Loader(data, batch_size=6)\nsee.take(iter(loader))",
    "an index beyond the end, with workers": f"sampler = Unsized(None)\n{_FOLDER}data = Subset(data, [0, 3, 4])\n"
    "loader = Loader(data, sampler=sampler, num_workers=1)\nsee.epoch(loader)",
    "an index beyond the end after an error": f"{_FOLDER}base.target_transform = RaisesAt('OSError', 0)\n"
    "loader = Loader(data, batch_sampler=[[0, 99], [1, 2]], num_workers=1)\nsee.take(iter(loader))",
    "a batch sampler's batch size before the first batch": f"{_VARYING}loader = Loader(data)\nbatches = iter(loader)\n"
    "loader.batch_sampler.batch_size = 5\nsee.take(batches, 2)",
    "a batch sampler's batch size, with a worker": f"{_VARYING}loader = Loader(data, num_workers=1)\n"
    "batches = iter(loader)\nloader.batch_sampler.batch_size = 5\nsee.take(batches)",
    "a batch sampler's batch size, with two workers": f"{_FOLDER}loader = Loader(data, batch_size=1, num_workers=2)\n"
    "batches = iter(loader)\nsee.take(batches, 2)\nloader.batch_sampler.batch_size = 2\nsee.take(batches)",
    "a batch sampler's batch size, where torch delivers": f"{_OWN}loader = Loader(data, batch_size=1)\n"
    "batches = iter(loader)\nsee.take(batches, 2)\nloader.batch_sampler.batch_size = 2\nsee.take(batches)",
    "a tv_tensor that becomes a tensor": "base = data = cifar(np.arange(12), V.Compose([V2.ToImage(), "
    "lambda x: x.add_(1)]), None)\nloader = Loader(data, collate_fn=list)\nsee.epoch(loader)",
    "an image's mode changed in place": "base = data = datasets.ImageFolder(folder('broken'), V.Compose([lambda x: "
    "x.putalpha(9) or x, V2.ToImage()]))\nloader = Loader(data)\nsee.take(iter(loader))",
    "PIL.Image.open while persistent workers live": "base = data = datasets.ImageFolder(folder('odd'), V.ToTensor())\n"
    "loader = Loader(data, num_workers=2, persistent_workers=True)\nsee.epoch(loader, 2)\n"
    "see.patch(Image, 'open', lambda *a, **k: red())\nsee.epoch(loader, 2)",
    "MAX_IMAGE_PIXELS within an epoch": f"{_FOLDER}loader = Loader(data)\nbatches = iter(loader)\n"
    "see.take(batches, 2)\nsee.patch(Image, 'MAX_IMAGE_PIXELS', 50)\nsee.take(batches)\nsee.epoch(loader)",
    "MAX_IMAGE_PIXELS within an epoch of workers": f"{_FOLDER}loader = Loader(data, num_workers=1, "
    "persistent_workers=True)\nbatches = iter(loader)\nsee.take(batches, 2)\n"
    "see.patch(Image, 'MAX_IMAGE_PIXELS', 50)\nsee.take(batches)\nsee.epoch(loader)",
    "a transform's class within an epoch": f"{_FOLDER}loader = Loader(data)\nbatches = iter(loader)\n"
    "see.take(batches, 1)\nbase.transform.__class__ = Twice\nsee.take(batches)",
    "functional.normalize below Fields": "base = data = headrace.Fields({'image': "
    f"headrace.ImageFiles(paths('same'), None, {_NORMALISED}), 'n': np.arange(12)}})\n"
    f"{_LOADER}see.around(F, 'normalize', halved)\n{_EPOCH}",
    "functional.resize in a geometry": "base = data = headrace.Fields({'image': "
    "headrace.ImageFiles(paths('same'), None, V.ToTensor())}, geometry=V.Resize((8, 8)))\n"
    f"{_LOADER}see.around(F, 'resize', negated)\n{_EPOCH}",
    "functional.normalize below a headrace_source": "class Named(torch.utils.data.Dataset):\n"
    f"    def __init__(self):\n        self.inner = headrace.ImageFolder(folder('same'), {_NORMALISED})\n"
    "    def __len__(self):\n        return len(self.inner)\n"
    "    def __getitem__(self, index):\n        return self.inner[index]\n"
    "    def headrace_source(self):\n        return self.inner\n\n"
    f"base = data = Subset(Named(), [3, 0, 1])\n{_LOADER}see.around(F, 'normalize', halved)\n{_EPOCH}",
    "__len__ of a class of headrace's, below a Subset": "base = data = headrace.ImageFolder(folder('plain'), "
    "transform=V.Compose([V.Resize((6, 10)), V.ToTensor()]))\ndata = Subset(data, [-1, 0, 2])\n"
    f"{_LOADER}see.patch(type(base), '__len__', lambda self: 5)\n{_EPOCH}",
    "an error that refuses attributes": f"{_OWN}base.transform = Raises('NoAttributes')\n{_LOADER}{_EPOCH}",
}


@pytest.mark.processes
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_once_differed(name: str) -> None:
    found = of_text(PROGRAMS[name])
    assert found is None, str(found)
