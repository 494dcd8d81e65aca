"""Where Python ignores exceptions, such as Ctrl-C's, no line of the package runs: in ``__del__`` and in callbacks."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import headrace
from headrace import Columns, DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from headrace._base.lifetimes.finalizers import Ending, call_all, call_in_finalizer_thread
from support import blobs, eventually, output_of, pictures, threads, threads_of_ours, threads_without_ours

PACKAGE = Path(headrace.__file__).parent
# In torch's worker processes, which the main process ends after Ctrl-C whatever they do.
IN_WORKERS = {"pillow/memory/batch_memory.py", "pillow/memory/pixel_memory.py"}
CALLBACKS = {"WeakSet", "WeakMethod", "WeakValueDictionary", "WeakKeyDictionary", "finalize"}


def offences(tree: ast.AST) -> Iterator[int]:
    """Lines that make Python call the package where it ignores exceptions."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.FunctionDef) and node.name == "__del__") or (
            isinstance(node, ast.Attribute) and node.attr in CALLBACKS
        ):
            yield node.lineno
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("ref", "proxy") and len(node.args) + len(node.keywords) > 1:
                yield node.lineno


def test_no_file_asks_for_it() -> None:
    found = {
        str(path.relative_to(PACKAGE)): list(offences(ast.parse(path.read_text()))) for path in PACKAGE.rglob("*.py")
    }
    assert {name for name, lines in found.items() if lines} <= IN_WORKERS, found


@contextlib.contextmanager
def called(*, everything: bool = True) -> Iterator[list[str]]:
    """Lists the functions of Python, or of the package alone, that are called in this thread."""
    found: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if (
            event == "call"
            and (everything or file.startswith(str(PACKAGE)))
            and file not in (__file__, contextlib.__file__)
        ):
            found.append(f"{file}:{frame.f_code.co_name}")

    gc.collect()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def step(image: Any) -> Any:
    return image


TENSORS = torch.zeros(24, 8, 8, 3, dtype=torch.uint8)
LOADERS: dict[str, Callable[[], Any]] = {
    "images": lambda: DataLoader(blobs(), 3, num_workers=2),
    "in this thread": lambda: DataLoader(blobs(), 3),
    "persistent": lambda: DataLoader(blobs(), 3, num_workers=2, persistent_workers=True),
    "columns": lambda: DataLoader(Columns({"x": TENSORS.numpy()}), 3, num_workers=1),
    "samples": lambda: DataLoader(headrace.Fields({"image": blobs(), "label": list(range(24))}), 3, num_workers=1),
    "Pillow": lambda: DataLoader(
        EncodedImages([pictures()[3]] * 24, None, T.Compose([T.Resize((8, 8)), T.ToTensor()])), 3, num_workers=2
    ),
    "a step": lambda: DataLoader(ImageArray(TENSORS, range(24), T.Compose([step, T.ToTensor()])), 3, num_workers=2),
    "collate_fn": lambda: DataLoader(
        blobs(), 3, num_workers=2, collate_fn=lambda samples: list(zip(*samples, strict=True))
    ),
    "views": lambda: DataLoader(
        blobs(transform=T.Views([T.Compose([T.Resize((8, 8)), T.ToTensor()])] * 2)), 3, num_workers=1
    ),
    "emulated": lambda: DataLoader(blobs(), 3, num_workers=1, device="emulated"),
}


@pytest.mark.parametrize("at", ["the beginning", "the middle", "the end"])
@pytest.mark.parametrize("name", LOADERS)
def test_a_loop_that_is_left_calls_nothing(name: str, at: str) -> None:
    before = threads_without_ours()
    loader = LOADERS[name]()
    iterator = iter(loader)
    batches = []
    for _ in range({"the beginning": 0, "the middle": 2, "the end": 99}[at]):
        batches.append(next(iterator, None))
    with called() as found:
        iterator = None
        batches.clear()
    assert not found
    with called() as found:
        loader = None
    assert not found
    assert eventually(lambda: threads() <= before)


@pytest.mark.processes
@pytest.mark.parametrize("size", [8, 1 << 17], ids=["small", "in shared blocks"])
def test_a_batch_of_torchs_workers_calls_nothing(size: int) -> None:
    loader = DataLoader(torch.zeros(12, size), 4, num_workers=1)  # type: ignore[arg-type, var-annotated]
    assert not loader.native
    iterator = iter(loader)
    batch = next(iterator)
    with called(everything=False) as found:
        del batch
    assert not found
    assert sum(1 for _ in iterator) == 2


def test_functions_are_called_when_the_object_is_dropped() -> None:
    done: list[int] = []
    threads_seen: list[threading.Thread] = []
    one = Ending()
    later = call_in_finalizer_thread(lambda: threads_seen.append(threading.current_thread()))
    one.at_end = call_all([done.clear, [1].clear], [later])
    done.append(1)
    del one
    assert not done
    assert eventually(lambda: bool(threads_seen)) and threads_seen[0] is not threading.main_thread()
    assert eventually(lambda: not any(one.name == "headrace-endings" for one in threading.enumerate()))
    Ending()  # without a function, nothing happens


@pytest.mark.parametrize("kept", [False, True])
def test_an_error_of_iter_leaves_no_threads_though_it_is_kept(kept: bool) -> None:
    def order() -> Iterator[int]:
        yield from range(2)
        raise KeyError("no more")

    data = EncodedImages(pictures(8), range(8), T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    loader = DataLoader(data, 2, sampler=order(), num_workers=2, persistent_workers=kept)
    with pytest.raises(KeyError) as raised:
        iter(loader)
    assert raised.value.__traceback__ is not None
    assert eventually(lambda: not threads_of_ours())


def test_what_was_asked_for_before_the_interpreter_ends_is_done() -> None:
    output = output_of(
        """
import time
from headrace._base.lifetimes.finalizers import call_in_finalizer_thread

def slowly():
    time.sleep(0.5)
    print("done", flush=True)

call_in_finalizer_thread(slowly)()
call_in_finalizer_thread(slowly)  # of an object that still exists
"""
    )
    assert output.split() == ["done"]


def test_a_function_that_raises_does_not_keep_others_from_being_called(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    called: list[int] = []
    first, second = call_in_finalizer_thread(lambda: [][1]), call_in_finalizer_thread(lambda: called.append(1))
    first()
    second()
    assert eventually(lambda: called == [1])
    assert [one.exc_type for one in raised] == [IndexError]
