"""Draws programs: a function of an integer alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from fuzz.programs.drawing import uses
from fuzz.programs.drawing import vocabulary as words
from fuzz.programs.drawing.parts import Program
from fuzz.programs.drawing.patches import FUNCTIONS, PATCHES, RETURNED
from fuzz.programs.world.errors import NASTY
from fuzz.programs.world.steps import LOOKING, SETTINGS, STATEFUL

_LOOPS = ("see.epoch(loader)", "see.epoch(loader)", "see.epoch(loader)", "see.epoch(loader, 2)", "see.epoch(loader, 1)")
_PARTS = (
    ("batches = iter(loader)", "see.take(batches, 2)", "see.take(batches)"),
    ("batches = iter(loader)", "see.take(batches, 1)", "del batches", "see.epoch(loader)"),
    ("batches = iter(loader)", "see.take(batches)", "see.take(batches, 1)"),
    (
        "batches = iter(loader)",
        "other = iter(loader)",
        "see.take(batches, 1)",
        "see.take(other, 1)",
        "see.take(batches, 2)",
        "see.take(other)",
        "see.take(batches)",
    ),
    ("see.pairs(loader, loader)",),
    ("see.pairs(loader, Loader(data, batch_size=2, shuffle=True))",),
    ("batches = iter(loader)", "see.epoch(loader, 2)", "see.take(batches, 2)"),
    ("batches = iter(loader)", "see.take(batches, 3)", "batches = iter(loader)", "see.take(batches)"),
)
_PROCESS = (
    "torch.manual_seed(5)",
    "random.seed(6)",
    "np.random.seed(7)",
    "see(torch.rand(1))",
    "see(random.random())",
    "see(np.random.rand())",
    "weights = torch.nn.Linear(2, 2).weight",
)
_OF_LOADERS = (
    "see(len(loader))",
    "see(loader.batch_size, loader.num_workers, loader.drop_last, loader.prefetch_factor)",
    "see(type(loader.sampler).__name__, type(loader.batch_sampler).__name__)",
    "see(loader.dataset is data, loader.generator is None)",
    "see(list(itertools.islice(loader, 2)))",
    "see(next(iter(loader)))",
    "loader = copy.copy(loader)",
    "loader = copy.deepcopy(loader)",
    "loader = pickle.loads(pickle.dumps(loader))",
    "loader.collate_fn = len",
    "loader.batch_size = 3",
    "loader.dataset = data",
    "loader.batch_sampler.batch_size = 5",
    "loader.sampler.num_samples = 4",
    "loader.batch_sampler.drop_last = True",
    "see([y for _, y in zip(range(3), loader)])",
    "loader = Loader(data, 3, sampler=loader.sampler)",
    "loader = Loader(loader.dataset, batch_sampler=loader.batch_sampler)",
    "see(data[0])",
    "see(base[1])",
    "see(len(data))",
    "see(sum(1 for _ in itertools.islice(loader, 30)))",
    "see.patch(loader, '__len__', lambda: 3)",
)
_OF_SAMPLERS = (
    "sampler.set_epoch(1)",
    "sampler.set_epoch(2)",
    "sampler.weights[0] = 50.0",
    "sampler.weights[1:3] = [9.0, 9.0]",
    "sampler.append(1)",
    "sampler[0] = 4",
    "sampler.reverse()",
    "sampler.indices = [1, 1]",
    "sampler.num_samples = 3",
    "see(len(sampler))",
    "see(list(itertools.islice(sampler, 5)))",
)
_OF_GENERATORS = ("g.manual_seed(1)", "see(torch.rand(1, generator=g))", "see(g.get_state()[:100])")
_OF_STEPS = (
    "see(getattr(step, 'calls', getattr(step, 'drawn', None)))",
    "step.calls = 3",
    "step.generator.seed(1)",
    "step = None",
)


_ODD_ARGUMENTS = (
    *("pin_memory=False", "timeout=0", "in_order=False", "worker_init_fn=print", "prefetch_factor=2"),
    *("persistent_workers=True", "num_workers=-1", "timeout=-1"),
)


class Draw(random.Random):
    """Choices for a program."""

    def often(self, p: float) -> bool:
        """Whether something happens that has a probability."""
        return self.random() < p

    def of(self, choices: Sequence[Any]) -> Any:
        """One of some."""
        return choices[int(self.random() * len(choices))]


def program(seed: int) -> Program:
    """The program of a number."""
    draw = Draw(seed)
    family: words.Family = draw.choices(words.FAMILIES, [one.weight for one in words.FAMILIES])[0]
    before: list[str] = []
    if family.labels:
        labels = draw.of(family.labels)
        before.append(
            f"{'columns' if labels == 'columns' else 'labels'} = {_columns() if labels == 'columns' else labels}"
        )
    names, arguments = draw.of(uses.ORDERS)
    if "Stream" in family.text and draw.often(0.8):
        names, arguments = (), ()
    before += names
    steps, defined = _steps(draw, family)
    before += defined
    target = _target(draw, family, before)
    arguments = list(arguments) + _arguments(draw, arguments)
    wraps = [draw.of(words.WRAPS) for _ in range(draw.of((0, 0, 0, 1, 1, 2)))] if "Stream" not in family.text else []
    workers = next((one for one in arguments if one.startswith("num_workers")), "")
    return Program(
        seed,
        tuple(before),
        family.text,
        tuple(steps),
        target,
        tuple(wraps),
        tuple(arguments),
        tuple(_actions(draw, family, before, wraps, steps, bool(workers))),
    )


def _columns() -> str:
    return "{'x': np.arange(12), 'y': torch.arange(24.0).reshape(12, 2)}"


def _steps(draw: Draw, family: words.Family) -> tuple[list[str], list[str]]:
    """The transform's steps, and the definitions that they need."""
    if family.recipe == "none" or draw.often(0.03):
        return [], []
    home = draw.of(("V", "V", "V", "H"))
    size = draw.of(("(8, 8)", "(8, 8)", "(6, 10)"))
    steps = [f"{home}.Resize({size})"]
    if draw.often(0.2):
        steps.append(draw.of((f"{home}.CenterCrop((5, 6))", f"{home}.Pad(1)", f"{home}.Grayscale(3)")))
    if family.recipe == "gray":
        steps = [one for one in steps if "Grayscale" not in one]
    if draw.often(0.06):
        steps = steps[1:]  # images of several sizes
    if family.global_draws and draw.often(0.3):
        steps.append(
            draw.of(("V.RandomHorizontalFlip()", "V.RandomCrop(4)", "V.ColorJitter(0.4)", "V.RandomResizedCrop(5)"))
        )
    ending = draw.of(
        (
            [f"{home}.ToTensor()"],
            [f"{home}.ToTensor()"],
            [f"{home}.PILToTensor()"],
            [f"{home}.ToTensor()", f"{home}.Normalize((0.5,), (0.25,))"],
            ["V2.ToImage()", "V2.ToDtype(torch.float32, scale=True)"],
        )
    )
    defined: list[str] = []
    images, tensors = len(steps), len(ending)
    steps += ending
    if draw.often(0.45):
        made = _own_step(draw, family)
        if made:
            text, where, definition = made
            at = draw.randint(0, images) if where == "image" else images + draw.randint(1, tensors)
            steps.insert(at, text)
            defined += definition
    return steps, defined


def _own_step(draw: Draw, family: words.Family) -> tuple[str, str, list[str]] | None:
    kind = draw.random()
    if kind < 0.3:
        text = draw.of(list(STATEFUL))
        fits = STATEFUL[text].split()
        if not fits:
            fits = ["tensor"] if family.global_draws else []
        if not fits:
            return None
        return "step", draw.of(fits), [f"step = {text}"]
    if kind < 0.5:
        where = draw.of(("tensor", "tensor", "image"))
        return f"lambda x: {draw.of(RETURNED[where])}", where, []
    if kind < 0.6:
        text, where = draw.of(FUNCTIONS)
        return "step", where, [text]
    if kind < 0.7:
        text = draw.of(list(LOOKING))
        return text, draw.of(LOOKING[text].split()), []
    return f"Raises({draw.of(list(NASTY))!r})", draw.of(("image", "tensor")), []


def _target(draw: Draw, family: words.Family, before: list[str]) -> str:
    if "{target}" not in family.text or draw.often(0.72):
        return ""
    if any(one.startswith("step = ") for one in before) and draw.often(0.6):
        return "step.label"
    if draw.often(0.25):
        return f"RaisesAt({draw.of(list(NASTY))!r}, {draw.of((0, 1, 2))})"
    return str(draw.of(words.TARGETS))


def _arguments(draw: Draw, given: Sequence[str]) -> list[str]:
    made: list[str] = []
    sized = not any(one.startswith(("batch_size", "batch_sampler")) for one in given)
    if sized:
        made.append(f"batch_size={draw.of((1, 2, 3, 3, 4, 4, 5, 5, 20, None))}")
        if draw.often(0.15) and "None" not in made[-1]:
            made.append("drop_last=True")
    workers = draw.choices((0, 1, 2, 3), (88, 6, 5, 1))[0]
    if workers:
        made.append(f"num_workers={workers}")
        if draw.often(0.3):
            made.append(f"prefetch_factor={draw.of((1, 3, 4))}")
        if draw.often(0.4):
            made.append("persistent_workers=True")
        if draw.often(0.2):
            made.append(f"worker_init_fn={draw.of(uses.INITS)}")
    if draw.often(0.14):
        made.append(f"collate_fn={draw.of(uses.COLLATES)}")
    if draw.often(0.03):
        odd = draw.of(_ODD_ARGUMENTS)
        if odd.split("=")[0] not in {one.split("=")[0] for one in made}:
            made.append(odd)
    return made


def _actions(
    draw: Draw, family: words.Family, before: Sequence[str], wraps: Sequence[str], steps: Sequence[str], workers: bool
) -> list[str]:
    pools: list[Sequence[str]] = [_PROCESS, _OF_LOADERS]
    if family.changes:
        pools += [family.changes] * 5
    if wraps:
        pools += [words.OF_WRAPS] * 2
    if steps:
        pools += [uses.TRANSFORM_CHANGES, PATCHES]
    if any(one.startswith("sampler") for one in before):
        pools += [_OF_SAMPLERS] * 2
    if any(one.startswith("g =") for one in before):
        pools += [_OF_GENERATORS] * 2
    if "step" in steps:
        pools += [(*_OF_STEPS, "AMOUNT[0] = 0.75", "amount = 0.75", "amount.value = 0.75")] * 2
    made: list[str] = []
    if any(one in LOOKING for one in steps):
        made.append(draw.of(SETTINGS))
    elif draw.often(0.06):
        made.append(draw.of((*SETTINGS, *PATCHES)))
    rounds = draw.of((1, 2, 2, 3)) if not workers else draw.of((1, 2, 2))
    for number in range(rounds):
        if number or draw.often(0.3):
            made += [draw.of(draw.of(pools)) for _ in range(draw.of((1, 1, 2)))]
        if draw.often(0.3):
            parts = list(draw.of(_PARTS))
            if draw.often(0.6):
                parts.insert(draw.randint(1, len(parts)), draw.of(draw.of(pools)))
            made += parts
        else:
            made.append(draw.of(_LOOPS))
        if draw.often(0.15):
            made.append("see.restore()")
    if draw.often(0.3):
        made.append("see(torch.rand(1))")
    return made
