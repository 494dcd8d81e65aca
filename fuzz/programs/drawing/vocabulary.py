"""The parts of programs: datasets with the changes that they take, and labels."""

from __future__ import annotations

from dataclasses import dataclass

_T = "transform={transform}, target_transform={target}"

LABELS = (
    "list(range(12))",
    "list(range(12))",
    "np.arange(12)",
    "np.arange(12, dtype=np.int8)",
    "np.arange(12, dtype=np.int16)",
    "np.arange(12, dtype=np.int32)",
    "np.arange(12, dtype=np.uint8)",
    "np.arange(12, dtype=np.uint16)",
    "np.arange(12, dtype=np.uint32)",
    "np.arange(12, dtype=np.uint64)",
    "np.arange(12, dtype=np.float16)",
    "np.arange(12, dtype=np.float32)",
    "np.arange(12) / 3",
    "np.arange(12) % 2 == 0",
    "torch.arange(12)",
    "torch.arange(12, dtype=torch.int32)",
    "torch.arange(12, dtype=torch.uint8)",
    "torch.arange(12.0)",
    "torch.arange(12) % 2 == 0",
    "[i % 2 == 0 for i in range(12)]",
    "[i / 3 for i in range(12)]",
    "[2**40 + i for i in range(12)]",
    "[2**70 + i for i in range(12)]",
    "[np.float32(i) for i in range(12)]",
    "[np.int16(i) for i in range(12)]",
    "[np.bool_(i % 2) for i in range(12)]",
    "[torch.tensor(i) for i in range(12)]",
    "[1 if i % 2 else 1.5 for i in range(12)]",
    "[i if i % 2 else True for i in range(12)]",
    "[f'c{i}' for i in range(12)]",
    "[(i, f'c{i}') for i in range(12)]",
    "[{'a': i, 'b': float(i)} for i in range(12)]",
    "[[i, 2 * i] for i in range(12)]",
    "[np.full(3, i, np.float32) for i in range(12)]",
    "np.arange(24).reshape(12, 2)",
    "torch.arange(24.0).reshape(12, 2)",
    "[None] * 12",
    "[b'x'] * 12",
    "[complex(i, 1) for i in range(12)]",
    "np.array([f'c{i}' for i in range(12)])",
    "np.arange(12).astype('datetime64[D]')",
    "[Pair(i, i + 1) for i in range(12)]",
    "tuple(range(12))",
    "range(12)",
)
#: Of torchvision's datasets, which hold numbers.
NUMBERS = LABELS[:24]

TARGETS = (
    "lambda y: y",
    "lambda y: float(y)",
    "lambda y: torch.tensor(y)",
    "lambda y: np.int32(y)",
    "lambda y: y > 1",
    "str",
    "{0: 5, 1: 6, 2: 7}.get",
    "[7, 8, 9] .__getitem__",
    "lambda y: (y, [y])",
    "lambda y: None if y == 2 else y",
    "functools.partial(max, 1)",
    "RaisesAt('KeyError', 1)",
    "RaisesAt('Code', 2)",
    "RaisesAt('StopIteration', 1)",
    "Counter()",
    "of_python().label",
    "lambda y, seen=[]: seen.append(y) or len(seen)",
)

_FOLDER = (
    "base.samples[1] = (base.samples[1][0], 7)",
    "base.samples[:] = [(path, 5) for path, _ in base.samples]",
    "base.samples = [(path, label + 3) for path, label in base.samples]",
    "base.samples.append(base.samples[0])",
    "base.samples.extend(base.samples[:3])",
    "base.samples = base.samples + base.samples[:2]",
    "base.samples.pop()",
    "del base.samples[5:]",
    "base.samples.reverse()",
    "base.samples[0], base.samples[1] = base.samples[1], base.samples[0]",
    "base.samples.insert(0, base.samples[-1])",
    "base.samples.clear()",
    "random.Random(0).shuffle(base.samples)",
    "base.samples[2] = (base.samples[0][0], base.samples[2][1])",
    "base.samples[2] = list(base.samples[2])",
    "base.samples = tuple(base.samples)",
    "base.samples[3] = ('missing.jpg', 3)",
    "base.samples = [(path, y) for (path, _), y in zip(base.samples, np.arange(12, dtype=np.int32))]",
    "base.imgs[0] = (base.imgs[0][0], 8)",
    "base.targets[0] = 9",
    "base.targets = [9] * 12",
    "base.loader = lambda path: Image.open(path).convert('RGB').rotate(180)",
    "base.loader = datasets.folder.pil_loader",
    "base.transform = None",
    "base.__class__ = FolderWithPaths",
    "base.__class__ = NegatedFolder",
    "base.__getitem__ = lambda index: 3",
)
_CIFAR = (
    "base.data[0] = 255",
    "base.data[1:3] = base.data[5:7]",
    "base.data = 255 - base.data",
    "base.targets[1] = 7",
    "base.targets = list(base.targets)[::-1]",
    "base.targets = [float(y) for y in base.targets]",
    "base.targets = np.asarray(base.targets, dtype=np.int16)",
    "base.data, base.targets = base.data[:5], base.targets[:5]",
    "base.data = np.concatenate([base.data, base.data[:3]]); base.targets = [*base.targets, 1, 2, 3]",
    "base.data = base.data[::-1]",
    "base.data = np.ascontiguousarray(base.data[:, ::-1])",
    "base.data = base.data[:, :16]",
    "base.data = base.data.tolist()",
    "base.data = base.data.astype(np.float32)",
    "base.targets.append(3)",
)
_MNIST = (
    "base.data[0].fill_(9)",
    "base.data = 255 - base.data",
    "base.targets[1] = 7",
    "base.targets = base.targets.flip(0) if hasattr(base.targets, 'flip') else base.targets[::-1]",
    "base.data, base.targets = base.data[:5], base.targets[:5]",
    "base.data = base.data.numpy()",
    "base.targets = torch.zeros(12)",
)
_OWN_SOURCE = (
    "base.transform = None",
    "base.target_transform = lambda y: y",
    "base.targets = [5] * 12",
    "base.labels = [5] * 12",
    "labels[2] = labels[0]",
    "labels = list(labels); labels[2] = labels[0]",
)
_OPENS = (
    "base.labels = list(base.labels); base.labels[1] = base.labels[0]",
    "base.paths[0] = base.paths[4]",
    "base.paths.append(base.paths[0]); base.labels = [*base.labels, base.labels[0]]",
    "base.paths = base.paths[:6]",
    "base.form = 'list'",
    "base.form = 'dict'",
    "base.paths[3] = 'missing.jpg'",
)
_FILES = (
    "swap_files(base)",
    "Path(paths_of(base)[0]).write_bytes(blobs('same')[3])",
    "Path(paths_of(base)[2]).unlink()",
)


@dataclass(frozen=True)
class Family:
    """A kind of dataset.

    Attributes:
        text: the expression, with {transform} and {target}; `labels` are defined before where it names them.
        changes: statements that change it.
        labels: choices of labels.
        recipe: "rgb", "gray": what the transform's steps get; "none": it takes no transform.
        weight: how often it is drawn.
        global_draws: whether steps that draw from the process's generators are allowed: torch makes the samples.
    """

    text: str
    changes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    recipe: str = "rgb"
    weight: int = 2
    global_draws: bool = False


FAMILIES = (
    Family(f"datasets.ImageFolder(folder('plain'), {_T})", _FOLDER, weight=10),
    Family(f"datasets.ImageFolder(folder('same'), {_T})", _FOLDER, weight=4),
    Family(f"datasets.ImageFolder(folder('odd'), {_T})", _FOLDER, weight=4),
    Family(f"datasets.ImageFolder(folder('broken'), {_T})", _FOLDER, weight=2),
    Family(f"datasets.ImageFolder(copied('same'), {_T})", (*_FILES, *_FILES, *_FOLDER), weight=3),
    Family(f"datasets.ImageFolder(folder('plain'), loader=own_loader, {_T})", _FOLDER, weight=1),
    Family(f"datasets.DatasetFolder(folder('plain'), datasets.folder.default_loader, ('.jpg',), {_T})", _FOLDER),
    Family(f"Folder(folder('plain'), {_T})", _FOLDER),
    Family(f"FolderWithPaths(folder('plain'), {_T})", _FOLDER, weight=1),
    Family(f"FolderOfSome(folder('plain'), {_T})", _FOLDER, weight=1),
    Family(f"FolderOfLoaders(folder('plain'), {_T})", _FOLDER, weight=1),
    Family(f"FolderOfProperties(folder('plain'), {_T})", _FOLDER[:3], weight=1),
    Family(f"FolderThatFinds(folder('plain'), {_T})", _FOLDER, weight=1),
    Family("cifar(labels, {transform}, {target})", _CIFAR, NUMBERS, weight=7),
    Family("cifar(labels, {transform}, {target}, datasets.CIFAR100)", _CIFAR, NUMBERS, weight=1),
    Family("cifar(labels, {transform}, {target}, Cifar)", _CIFAR, NUMBERS, weight=2),
    Family("cifar(labels, {transform}, {target}, NoisyCifar)", _CIFAR, NUMBERS, weight=1),
    Family("mnist(labels, {transform}, {target})", _MNIST, NUMBERS, "gray", weight=4),
    Family("mnist(labels, {transform}, {target}, datasets.FashionMNIST)", _MNIST, NUMBERS, "gray", weight=1),
    Family(f"headrace.ImageFolder(folder('plain'), {_T})", _OWN_SOURCE, weight=4),
    Family(f"headrace.ImageFiles(paths('plain'), labels, {_T})", _OWN_SOURCE, LABELS, weight=4),
    Family(f"headrace.ImageFiles(paths_of(copied('same')), labels, {_T})", _FILES, LABELS, weight=1),
    Family(f"headrace.EncodedImages(blobs('odd'), labels, {_T})", _OWN_SOURCE, LABELS, weight=3),
    Family(f"headrace.EncodedImages(blobs('broken'), None, {_T})", _OWN_SOURCE, weight=1),
    Family(f"headrace.ImageArray(pixels(), labels, {_T})", _OWN_SOURCE, LABELS, weight=3),
    Family("headrace.Columns({'x': np.arange(12), 'y': np.eye(12, dtype=np.float32)})", (), recipe="none"),
    Family(
        "headrace.Columns(columns)",
        ("columns['x'][0] = 9", "columns['x'] = columns['x'] + 1", "base.columns['x'][1] = 5"),
        ("columns",),
        "none",
    ),
    Family(
        "headrace.Fields({'image': headrace.ImageFiles(paths('same'), None, {transform}), 'n': labels})",
        ("labels[2] = labels[0]",),
        LABELS[:21],
    ),
    Family(
        "StackDataset(image=datasets.ImageFolder(folder('plain'), {transform}, {target}), n=labels)",
        (
            "base.datasets['n'] = [5] * 12",
            "base.datasets['image'].samples[0] = (base.datasets['image'].samples[0][0], 7)",
            "base.datasets['image'].transform = None",
        ),
        LABELS[:4],
    ),
    Family(
        "StackDataset(headrace.EncodedImages(blobs('odd'), None, {transform}), labels)", ("labels[2] = 5",), LABELS[:4]
    ),
    Family(
        "TensorDataset(torch.arange(12.0), torch.arange(24).reshape(12, 2))",
        ("base.tensors[0][1] = 9", "base.tensors = (base.tensors[0][:5],)", "base.tensors[1].add_(1)"),
        recipe="none",
    ),
    Family(
        "Numbers()",
        ("base.values[0] = 9", "base.values.append(3)", "base.values = [3.5] * 4", "del base.values[6:]"),
        recipe="none",
        weight=3,
    ),
    Family("Whole()", ("base.values[0] = 9", "base.values.append(3)"), recipe="none", weight=1),
    Family("list(range(100, 112))", ("base[0] = 9", "base.append(3)", "base.pop()"), recipe="none", weight=1),
    Family("{'a': 1, 'b': 2.5}", (), recipe="none", weight=1),
    Family("Stream()", ("base.values[0] = 9", "base.values.append(3)"), recipe="none", weight=2),
    Family("Opens(paths('plain'), labels, {transform}, {target})", _OPENS, LABELS, weight=6, global_draws=True),
    Family("Opens(paths('same'), labels, {transform}, {target}, 'dict')", _OPENS, LABELS, weight=2, global_draws=True),
    Family("Opens(paths('odd'), labels, {transform}, {target}, 'nested')", _OPENS, LABELS, weight=2, global_draws=True),
    Family("Opens(paths('odd'), labels, {transform}, {target}, 'pair')", _OPENS, LABELS, weight=1, global_draws=True),
    Family(
        "Opens(paths('broken'), labels, {transform}, {target}, 'image')", _OPENS, LABELS, weight=1, global_draws=True
    ),
    Family("Batched(paths('plain'), labels, {transform}, {target})", _OPENS, LABELS, weight=1, global_draws=True),
    Family("Drawing(paths('plain'), labels, {transform}, {target})", _OPENS, LABELS, weight=3, global_draws=True),
    Family("Lazy(paths('plain'), labels, {transform}, {target})", _OPENS, LABELS, weight=1, global_draws=True),
)

WRAPS = (
    "Subset(data, [3, 1, 4, 1, 5])",
    "Subset(data, list(range(2, 9)))",
    "Subset(data, range(1, 8))",
    "Subset(data, np.array([5, 2, 0, 7]))",
    "Subset(data, torch.tensor([6, 3, 3, 1]))",
    "Subset(data, [-1, 0, 2])",
    "Subset(data, [0, 40])",
    "Subset(data, [True, 3])",
    "ConcatDataset([data, data])",
    "ConcatDataset([data, Subset(data, [0, 2])])",
    "random_split(data, [5, len(data) - 5], generator=torch.Generator().manual_seed(1))[0]",
)
OF_WRAPS = (
    "data.indices[0] = 2",
    "data.indices.append(5)",
    "data.indices = [0, 1, 2, 3]",
    "data.indices = list(data.indices)[::-1]",
    "del data.indices[2:]",
    "data.indices.clear()",
    "data.dataset = datasets.ImageFolder(folder('same'), base.transform)",
    "data.datasets[0], data.datasets[1] = data.datasets[1], data.datasets[0]",
    "data.datasets.append(data.datasets[0])",
    "data.cumulative_sizes = [3, 5]",
    "data.datasets[1] = Subset(base, [5, 6])",
)
