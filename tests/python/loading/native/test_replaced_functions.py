"""Functions that other code has put in place of a library's: batches are torch's, before and after, and say why."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import BatchSampler, ConcatDataset, StackDataset, Subset, default_collate
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace import DataLoader
from headrace import transforms as ours

V1, V2, F, VF = (
    "torchvision.transforms.transforms",
    "torchvision.transforms.v2",
    "torchvision.transforms.functional",
    "torchvision.transforms.v2.functional",
)
FOLDER, COLLATE = "torchvision.datasets.folder", "torch.utils.data._utils.collate"


def datasets(torchvision: Any, root: Path) -> dict[str, Callable[[], Any]]:
    v1, v2, folder = torchvision.transforms, torchvision.transforms.v2, torchvision.datasets.ImageFolder
    tail = [v1.ToTensor(), v1.Normalize((0.5,) * 3, (0.25,) * 3)]
    values = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]

    def v1_folder() -> Any:
        return folder(root, v1.Compose([v1.Resize(40), v1.CenterCrop(32), *tail]))

    return {
        "v1": v1_folder,
        "v2": lambda: folder(root, v2.Compose([v2.Resize(40), v2.CenterCrop(32), *values])),
        # Nothing is left to chance: the two loaders draw from different generators.
        "flip": lambda: folder(root, v1.Compose([v1.Resize((32, 32)), v1.RandomHorizontalFlip(1.0), v1.ToTensor()])),
        "flip v2": lambda: folder(root, v2.Compose([v2.Resize((32, 32)), v2.RandomVerticalFlip(1.0), v2.ToImage()])),
        "ours": lambda: headrace.ImageFolder(
            root, ours.Compose([ours.Resize(40), ours.CenterCrop(32), ours.ToTensor()])
        ),
        "subset": lambda: Subset(v1_folder(), [0, 3, 5, 7]),
        "joined": lambda: ConcatDataset([v1_folder(), v1_folder()]),
        "fields": lambda: StackDataset(
            image=headrace.ImageFiles(v1_folder_paths(root), transform=ours_steps()),
            label=list(range(8)),  # type: ignore[arg-type]
        ),
        "own fields": lambda: headrace.Fields(
            {"image": headrace.ImageFiles(v1_folder_paths(root), transform=ours_steps()), "label": list(range(8))}
        ),
        "columns": lambda: headrace.Columns({"x": torch.arange(24.0).reshape(8, 3).numpy()}),
    }


def v1_folder_paths(root: Path) -> list[str]:
    return [str(path) for path in sorted(root.rglob("*.*"))]


def ours_steps() -> Any:
    return ours.Compose([ours.Resize((32, 32)), ours.ToTensor()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, photographs: list[Path]) -> Path:
    """Eight small images of two classes."""
    root = tmp_path_factory.mktemp("classes")
    for number, path in enumerate(photographs[:8]):
        (root / f"c{number % 2}").mkdir(exist_ok=True)
        with Image.open(path) as image:
            image.resize((70 + number, 60)).save(root / f"c{number % 2}" / f"{number}.jpg")
    return root


def red(*_: Any, **__: Any) -> Image.Image:
    return Image.new("RGB", (60, 50), (200, 1, 1))


def inverted(before: Any) -> Any:
    """The function before, with images and tensors that differ."""

    def call(*args: Any, **options: Any) -> Any:
        return changed(before(*args, **options))

    return call


def changed(made: Any) -> Any:
    if isinstance(made, (torch.Tensor, np.ndarray)):
        return made + 1
    if isinstance(made, Image.Image):
        return Image.frombytes(made.mode, made.size, made.tobytes()[::-1])
    if isinstance(made, (tuple, list)):
        return type(made)([changed(made[0]), *made[1:]])
    return {name: changed(one) for name, one in made.items()} if isinstance(made, dict) else made


# (dataset, what holds the function, its name)
CASES = [
    ("v1", FOLDER, "pil_loader"),
    ("v1", "PIL.Image", "open"),
    ("v1", "PIL.Image:Image", "convert"),
    ("v1", "PIL.Image:Image", "resize"),
    ("v1", "PIL.Image:Image", "crop"),
    ("flip", "PIL.Image:Image", "transpose"),
    ("v1", F, "resize"),
    ("v1", F, "center_crop"),
    ("v1", F, "to_tensor"),
    ("v1", F, "normalize"),
    ("v1", "torchvision.transforms._functional_pil", "crop"),
    ("v1", "torchvision.transforms._functional_pil", "resize"),
    ("v1", "torchvision.transforms._functional_tensor", "normalize"),
    ("flip", "torchvision.transforms._functional_pil", "hflip"),
    ("v1", f"{V1}:Resize", "forward"),
    ("v1", f"{V1}:CenterCrop", "__call__"),
    ("v1", f"{V1}:ToTensor", "__call__"),
    ("v1", f"{V1}:Compose", "__call__"),
    ("v2", f"{V2}:Compose", "forward"),
    ("v2", f"{V2}:Transform", "forward"),
    ("v2", f"{V2}:Resize", "transform"),
    ("v2", f"{V2}:Transform", "_call_kernel"),
    ("v2", VF, "to_image"),
    ("flip v2", f"{V2}:RandomVerticalFlip", "transform"),
    ("v2", "torch.nn:Module", "__call__"),
    ("v1", "torchvision.datasets:ImageFolder", "__getitem__"),
    ("v1", "torchvision.datasets:DatasetFolder", "__getitem__"),
    ("subset", "torch.utils.data:Subset", "__getitems__"),
    ("joined", "torch.utils.data:ConcatDataset", "__getitem__"),
    ("fields", "torch.utils.data:StackDataset", "__getitems__"),
    ("fields", "PIL.Image:Image", "resize"),
    ("columns", "headrace:Columns", "__getitems__"),
    ("v1", COLLATE, "collate"),
    ("v1", "torch.utils.data._utils.fetch:_MapDatasetFetcher", "fetch"),
    ("ours", "headrace.transforms:Resize", "transform"),
    ("ours", "headrace.transforms:ToTensor", "forward"),
    ("ours", "headrace:ImageFiles", "image"),
    ("ours", "PIL.Image:Image", "convert"),
]


def holder_of(where: str) -> Any:
    module, _, name = where.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


@contextmanager
def put(holder: Any, name: str, value: Any) -> Iterator[None]:
    own = vars(holder).get(name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(holder, name)
        else:
            setattr(holder, name, own)


@contextmanager
def replaced(holder: Any, name: str, way: str) -> Iterator[None]:
    before = getattr(holder, name)
    function = before if isinstance(before, FunctionType) else before.__func__
    new = inverted(before)
    if way == "code":
        kept, function.__code__ = function.__code__, (lambda *args, **options: KEPT[0](*args, **options)).__code__
        copy = FunctionType(kept, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        scope = function.__globals__
        scope["KEPT"] = [inverted(copy)]
        try:
            yield
        finally:
            function.__code__ = kept
            del scope["KEPT"]
        return
    with put(holder, name, functools.wraps(before)(new) if way == "wrapped" else new):
        yield


KEPT: list[Any] = []


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[name], b[name]) for name in a)
    return len(a) == len(b) and all(map(equal, a, b)) if isinstance(a, (list, tuple)) else a == b


@pytest.mark.parametrize("way", ["assigned", "wrapped", "code"])
@pytest.mark.parametrize(("kind", "where", "name"), CASES, ids=[" ".join(one) for one in CASES])
def test_batches_are_torchs(torchvision: ModuleType, folder: Path, kind: str, where: str, name: str, way: str) -> None:
    holder, make = holder_of(where), datasets(torchvision, folder)[kind]
    function = getattr(holder, name)
    if way == "code" and (not isinstance(function, FunctionType) or function.__closure__):
        pytest.skip("a function with a closure takes no other code")
    loader = DataLoader(make(), batch_size=4)
    plain = list(loader)
    assert loader.route == "native"
    with replaced(holder, name, way):
        expected = list(TorchDataLoader(make(), batch_size=4))
        made_then = DataLoader(make(), batch_size=4)
        assert equal(list(made_then), expected)
        assert equal(list(loader), expected)  # replaced between two epochs
        assert not loader.native and not made_then.native
        reason = str(loader.explain())
        assert name in reason
    assert not equal(expected, plain)
    for one in (loader, made_then):  # and put back
        assert equal(list(one), plain)
        assert one.native
        assert one.verify(1).batches == 1 if kind != "columns" else True


def outcome(loader: Any) -> Any:
    """The batches, or the class of the error."""
    try:
        return list(loader)
    except (LookupError, ValueError) as error:
        return [type(error)]


@pytest.mark.parametrize("kind", ["v1", "subset", "joined", "fields", "own fields", "columns", "ours"])
def test_special_methods_of_datasets(torchvision: ModuleType, folder: Path, kind: str) -> None:
    """Operators and builtins call these, without a name in the code: ``__getitem__`` may ask for ``len(self)``."""
    make = datasets(torchvision, folder)[kind]
    items = [[0, 1], [-1], [2, 3]]
    cls = type(make())
    for name, value in (
        ("__len__", lambda self: 2),
        ("__getattribute__", lambda self, name: object.__getattribute__(self, name)),
    ):
        loader = DataLoader(make(), batch_sampler=items)
        before = outcome(loader)
        with put(cls, name, value):
            assert equal(outcome(loader), outcome(TorchDataLoader(make(), batch_sampler=items)))
            assert not loader.native and name in str(loader.explain())
        assert equal(outcome(loader), before)


def test_the_reason_names_the_function_and_who_replaced_it(torchvision: ModuleType, folder: Path) -> None:
    loader = DataLoader(datasets(torchvision, folder)["v1"]())
    with put(holder_of(FOLDER), "pil_loader", red):
        loader.explain()
        with pytest.raises(RuntimeError, match=rf"{FOLDER}.pil_loader was replaced by .*test_replaced_functions.red"):
            loader.recipe()
    loader.recipe()


def test_mocks(torchvision: ModuleType, folder: Path) -> None:
    make = datasets(torchvision, folder)["v1"]
    data = make()
    loader = DataLoader(data, batch_size=4)
    with mock.patch(f"{FOLDER}.pil_loader", side_effect=red) as called:
        assert equal(list(loader), list(TorchDataLoader(make(), batch_size=4)))
    assert called.call_count == 2 * len(data)
    for where in ("builtins.open", f"{FOLDER}.open"):  # the second hides Python's own
        with mock.patch(where, create=True, side_effect=open) as called:
            list(loader)
        assert called.call_count >= len(data)
    with mock.patch("torch.rand", side_effect=torch.rand):
        assert DataLoader(make()).native
        assert not DataLoader(datasets(torchvision, folder)["flip"]()).native
    list(loader)
    assert loader.native


@pytest.mark.parametrize(("where", "name"), [(FOLDER, "Image"), (V1, "F")])
def test_another_module_under_a_librarys_name(torchvision: ModuleType, folder: Path, where: str, name: str) -> None:
    make = datasets(torchvision, folder)["v1"]
    loader, module = DataLoader(make(), batch_size=4), holder_of(where)
    own = vars(module)[name]
    fake = SimpleNamespace(**{**vars(own), "open": red, "resize": red})
    with put(module, name, fake):
        assert equal(list(loader), list(TorchDataLoader(make(), batch_size=4)))
        assert not loader.native


def test_methods_put_on_objects(torchvision: ModuleType, folder: Path) -> None:
    v1 = torchvision.transforms
    for change in (
        lambda step: setattr(step, "forward", lambda image: v1.functional.hflip(v1.functional.resize(image, [40, 40]))),
        lambda step: step.register_forward_hook(lambda module, given, made: made.rotate(180)),
        lambda step: step.register_forward_pre_hook(lambda module, given: (given[0].rotate(180),)),
    ):
        batches = []
        for loader_class in (TorchDataLoader, DataLoader):
            step = v1.Resize((40, 40))
            data = torchvision.datasets.ImageFolder(folder, v1.Compose([step, v1.ToTensor()]))
            loader = loader_class(data, batch_size=4)
            epochs = [list(loader)]
            change(step)
            epochs.append(list(loader))
            batches.append(epochs)
        assert equal(*batches) and not equal(*batches[0])
    for cls, name in ((headrace.ImageFolder, "read"), (headrace.ImageFolder, "image")):
        data = cls(folder, ours_steps())
        loader = DataLoader(data, batch_size=4)
        native = list(loader)
        setattr(data, name, functools.partial(lambda before, index: before((index + 1) % 8), getattr(data, name)))
        assert equal(list(loader), list(TorchDataLoader(data, batch_size=4)))
        assert not equal(native, list(loader)) and not loader.native


def test_a_hook_of_all_modules(torchvision: ModuleType, folder: Path) -> None:
    make = datasets(torchvision, folder)["v1"]
    loader = DataLoader(make(), batch_size=4)
    hook = torch.nn.modules.module.register_module_forward_hook(lambda module, given, made: changed(made))
    try:
        assert equal(list(loader), list(TorchDataLoader(make(), batch_size=4)))
    finally:
        hook.remove()
    list(loader)
    assert loader.native


def test_a_default_of_torch_that_was_replaced(
    torchvision: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = datasets(torchvision, folder)["v1"]
    monkeypatch.setattr(f"{COLLATE}.default_collate", inverted(default_collate))
    assert equal(list(DataLoader(make(), batch_size=4)), list(TorchDataLoader(make(), batch_size=4)))
    collated = DataLoader(make(), batch_size=4, collate_fn=lambda samples: [image for image, _ in samples])
    assert collated.native  # its own function is called


def test_changed_defaults(torchvision: ModuleType, folder: Path) -> None:
    loader = DataLoader(datasets(torchvision, folder)["v1"](), batch_size=4)
    convert: Any = Image.Image.convert
    with mock.patch.object(convert, "__defaults__", ("L", *convert.__defaults__[1:])):
        list(loader)
        assert not loader.native
    list(loader)
    assert loader.native


def test_what_no_sample_calls_may_be_replaced(
    torchvision: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image.Image, "save", inverted(Image.Image.save))
    monkeypatch.setattr(Image.Image, "show", inverted(Image.Image.show))
    monkeypatch.setattr("torchvision.transforms.functional.to_pil_image", red)
    monkeypatch.setattr(f"{V1}.RandomRotation.get_params", red)
    assert DataLoader(datasets(torchvision, folder)["v1"]()).native


@pytest.mark.parametrize("workers", [0, 1])
def test_a_function_that_is_replaced_within_an_epoch(
    torchvision: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    normalize, made = torchvision.transforms.Normalize, datasets(torchvision, folder)["v1"]
    plain = normalize.forward

    def batches(loader: Any) -> list[Any]:
        epoch = iter(loader(made(), batch_size=2, num_workers=workers))
        first = [next(epoch)]
        with monkeypatch.context() as context:
            context.setattr(normalize, "forward", lambda self, values: plain(self, values) / 2)
            first.append(next(epoch))
        return first + list(epoch)

    for theirs, mine in zip(batches(TorchDataLoader), batches(DataLoader), strict=True):
        assert torch.equal(theirs[0], mine[0])


@pytest.mark.parametrize("workers", [0, 1])
def test_replaced_iterations_of_samplers(
    torchvision: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    made = datasets(torchvision, folder)["v1"]
    monkeypatch.setattr(BatchSampler, "__iter__", lambda self: iter([[2, 1], [0]]))
    theirs = [labels.tolist() for _, labels in TorchDataLoader(made(), batch_size=4, num_workers=workers)]
    assert [labels.tolist() for _, labels in DataLoader(made(), batch_size=4, num_workers=workers)] == theirs
    assert [len(one) for one in theirs] == [2, 1]
