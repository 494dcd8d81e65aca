"""The layers of ARCHITECTURE.md: nothing includes or imports anything of a later layer, and files stay small."""

from __future__ import annotations

import ast
import re
import statistics
from pathlib import Path

import pytest

import headrace

ROOT = Path(__file__).resolve().parents[2]
HARD_CAP = 400  # lines

# Within a layer (a line) anything goes but a cycle; a layer sees those above it.
PUBLIC = set(headrace.__all__) | {"__version__"}
CORE = """
error geometry fork_guard clock aligned_array find_ff
blob
reader jpeg_metadata plan pixel_math
jpeg_header resample_table planar_image effect_math effects normalisation
huffman kernels plane_layout
jpeg_session
jpeg_decoder plane_decoder
recorder
slot_ring thread_pool stage_stats output pool
rgbx_output taker resampler blur retoucher row_store raw_rows
fuse
batch
sample_worker
backend
sample_maker
segment_maker sample_queue python_lane cpu_backend
python_desk
pipeline
"""
GPU = """
sample_job
tile_source element_store
fuse_block
retouch_block
emulation device
job_builder emulated_device cuda_fuse batch_decoder nvjpeg_api router
staging cuda_device nvjpeg_decoder emulated_decoder decode_lane
device_batch device_ops timing
device_worker
device_backend
"""
PYTHON = """
_native cores errors boxes file_image kinds pil_tensor pointwise whole_number recording timeline
aspect ops_arguments
world
calls
steps
recipe
pillow_ops tensor_ops
sources.labels
sources.dataset sources.packed_paths sources.unchanged sources.followed
sources.sizes sources.image_files sources.blobs sources.arrays sources.combined
sources.image_folder sources.torchvision_files sources.torchvision_arrays sources.torch_combined sources.opt_in
sources.recognise
sources
gaussian
draws
pillow_rule blur_rule
transforms
sampler.seeded
sampler.plain
sampler.permutation sampler.padding sampler.distributed sampler.lengths sampler.aspect
sampler.repeated
sampler
sampler_state
recognition target
sample_randomness own_generators
lowering.sizes lowering.described lowering.metadata lowering.reach
lowering.builder
lowering.images
lowering.geometry lowering.pointwise lowering.containers lowering.python_steps
lowering.colour lowering.erasing lowering.blur
lowering.timm
lowering reference_steps
reference_colour reference_containers reference_tensor reference_calls
reference
device_ops python_lane worker_info storage_pool
pillow_lane call_lane
ops engine
device_engine
variant_engine
order
sampling
delivery faults
state
epochs out_transform line
iterator
chrome_trace
profiler
handed.protocol
handed.randomness handed.indices handed.carried
handed.layout handed.workers
handed.iterators handed.progress
handed.making
handed
stats report verification arguments routing fallback
runner
integrations.remake
integrations.tickets
integrations.accelerate
integrations
loader
demo commands
cli
"""


def ranks(layers: str) -> dict[str, int]:
    return {name: rank for rank, line in enumerate(layers.strip().splitlines()) for name in line.split()}


def test_core_includes_point_one_way() -> None:
    rank = ranks(CORE)
    for path in sorted((ROOT / "csrc/core").iterdir()):
        name = layer_of_core(path.stem, rank)
        for folder, included in includes(path):
            assert folder == "core", f"{path.name} includes a file of csrc/{folder}"
            assert rank[layer_of_core(included, rank)] <= rank[name], (
                f"{path.name} includes {included}.h of a later layer"
            )
        for header in ("Python.h", "pybind11", "torch/", "cuda"):
            assert not re.search(rf"#include [<\"]{header}", path.read_text()), f"{path.name} includes {header}"


def test_gpu_includes_point_one_way() -> None:
    core, rank = ranks(CORE), ranks(GPU)
    for path in sorted((ROOT / "csrc/gpu").iterdir()):
        assert path.stem in rank, f"csrc/gpu/{path.stem} is in no layer: add it to GPU and to ARCHITECTURE.md"
        for folder, included in includes(path):
            if folder == "core":
                layer_of_core(included, core)
            else:
                assert rank[included] <= rank[path.stem], f"{path.name} includes {included}.h of a later layer"
        for header in ("Python.h", "pybind11", "torch/"):
            assert not re.search(rf"#include [<\"]{header}", path.read_text()), f"{path.name} includes {header}"
        if not path.stem.startswith("cuda"):
            assert not re.search(r"#include <(cuda|nvjpeg)", path.read_text()), f"{path.name} needs CUDA"


def includes(path: Path) -> list[tuple[str, str]]:
    """(folder below csrc, name without ending) of every file of ours that a file includes."""
    found = re.findall(r'#include "(?:\.\./(\w+)/)?([\w]+)\.\w+"', path.read_text())
    return [(folder or path.parent.name, name) for folder, name in found]


def layer_of_core(stem: str, rank: dict[str, int]) -> str:
    """kernels_avx2, store_avx512, kernel_sets and the like belong to the layer that their name begins or ends with."""
    if stem in rank:
        return stem
    aliases = {"kernel_sets": "kernels", "row_buffer": "kernels"}
    for name in (aliases.get(stem, ""), stem.split("_")[0], "kernels" if stem.startswith("store_") else ""):
        if name in rank:
            return name
    raise AssertionError(f"csrc/core/{stem} is in no layer: add it to CORE and to ARCHITECTURE.md")


def test_bindings_are_seen_by_nobody() -> None:
    for path in [*(ROOT / "csrc/core").iterdir(), *(ROOT / "csrc/gpu").iterdir()]:
        assert "/bind/" not in path.read_text()


def python_modules() -> dict[str, Path]:
    package = ROOT / "python/headrace"
    modules = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name and parts[-1] != "__main__":
            modules[name] = path
    return modules


def imported(path: Path) -> set[str]:
    """Names below headrace that a module imports when it runs (not under TYPE_CHECKING)."""
    found = set()
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "headrace":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headrace."):
            found.add((node.module or "").removeprefix("headrace."))
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path.name} imports relatively")
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("headrace.") for alias in node.names if alias.name.startswith("headrace.")
            }
    return found


def layer_of_python(name: str, rank: dict[str, int]) -> str:
    while name not in rank:
        if "." not in name:
            raise AssertionError(f"headrace.{name} is in no layer: add it to PYTHON and to ARCHITECTURE.md")
        name = name.rsplit(".", 1)[0]
    return name


def test_python_imports_point_one_way() -> None:
    rank = ranks(PYTHON)
    for name, path in python_modules().items():
        own = rank[layer_of_python(name, rank)]
        for other in imported(path):
            if other == "_core":
                continue
            if other in PUBLIC and other not in python_modules() and other not in rank:
                other = "loader"  # the package's face is made of all that is below the demo and the commands
            assert rank[layer_of_python(other, rank)] <= own, (
                f"headrace.{name} imports headrace.{other} of a later layer"
            )


def source_files() -> list[Path]:
    folders = ("csrc", "python/headrace", "tests", "bench", "examples", "fuzz")
    ends = {".py", ".h", ".cpp"}
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in ends]


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_one_file_one_job(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= HARD_CAP, "split it: one file, one job"
    if lines and path.name != "__init__.py":
        first = lines[0] if not lines[0].startswith("#!") else lines[1]
        assert first.startswith(("//", '"""', "# ", 'r"""')), "line one says the file's job"


def test_median_file_is_small() -> None:
    product = [
        path for path in source_files() if path.is_relative_to(ROOT / "csrc") or path.is_relative_to(ROOT / "python")
    ]
    assert statistics.median(len(path.read_text().splitlines()) for path in product) <= 130
