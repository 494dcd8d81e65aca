"""The foreign test suites, which files they are and with which loader each is run first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from source_changes import unchanged, with_calls, with_equal_types, with_loader

TORCH = "from torch.utils.data import DataLoader"
TORCHDATA = "from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader"
HEADRACE = "from headrace import DataLoader"
ON_DEVICE = "from device_loader import DataLoader"  # of run.py
PILLOW = "import PIL.Image"
DEFERRED = "import headrace.pillow; headrace.pillow.install()"
INPUTS = "import deferred_inputs; deferred_inputs.install(deferred={})"


@dataclass(frozen=True)
class Suite:
    """A suite of another project.

    Attributes:
        files: the tests, relative to the checkout.
        baseline: the import with which they run first.
        copied: the folder of the checkout that is copied and imported from.
        changed: the statement with which they run then.
        change: changes the text of a test file, for a statement. `with_calls` replaces the loader where one is made,
            and not where a class is asked for: Accelerate's own loaders are torch's by inheritance, and its tests say
            so.
        patched: modules of the project whose name `DataLoader` is replaced too.
        options: of pytest.
    """

    files: tuple[str, ...]
    baseline: str
    copied: str
    changed: str = HEADRACE
    change: Callable[[str, str], str] = with_loader
    patched: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def _of_torchvision(*names: str) -> Suite:
    """Every image tensor that these tests make is read from a file; and then deferred."""
    files, options = tuple(f"test/{name}.py" for name in names), ("-p", "deferred_inputs", "-p", "no:cacheprovider")
    return Suite(files, INPUTS.format(False), "test", INPUTS.format(True), with_equal_types, options=options)


_TORCHDATA = "test/stateful_dataloader"
_LIGHTNING = "tests/tests_pytorch"
SUITES = {
    # torchdata keeps a copy of PyTorch's own test/test_dataloader.py.
    "pytorch": Suite((f"{_TORCHDATA}/test_dataloader.py",), TORCH, _TORCHDATA),
    "torchdata": Suite((f"{_TORCHDATA}/test_state_dict.py", f"{_TORCHDATA}/test_sampler.py"), TORCHDATA, _TORCHDATA),
    "torchdata-hugging-face": Suite((f"{_TORCHDATA}/test_hugging_face.py",), TORCHDATA, _TORCHDATA),
    "accelerate": Suite(("tests/test_data_loader.py", "tests/test_accelerator.py"), TORCH, "tests", change=with_calls),
    "lightning": Suite(
        tuple(
            f"{_LIGHTNING}/{name}.py"
            for name in (
                "trainer/test_dataloaders",
                "utilities/test_data",
                "utilities/test_combined_loader",
                "loops/test_fetchers",
                "trainer/connectors/test_data_connector",
            )
        ),
        TORCH,
        "tests",
        patched=("lightning.pytorch.demos.boring_classes",),
        options=("-p", "no:cacheprovider"),
    ),
    # Its loader is none: every image of its own tests is opened deferred.
    "pillow": Suite(
        ("Tests",), PILLOW, "Tests", DEFERRED, unchanged, options=("-p", "Tests.helper", "-p", "no:warnings")
    ),
    "torchvision": _of_torchvision("test_transforms_v2"),
    "torchvision-v1": _of_torchvision("test_transforms_tensor", "test_functional_tensor"),
}
