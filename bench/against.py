"""Compares the speed of the working tree with that of another commit, and fails on a loss that repeats.

    python -m bench.against [COMMIT] [--loss 0.15] [--rounds 6]

Both are built in the same way. Their runs alternate, each in its own process. A run reads one folder of images through
one native thread and, where torchvision is installed, through a dataset of one's own that opens them with Pillow. It
measures the CPU time of the whole process, which other processes disturb less than wall time. A loss counts if the
median of the ratios is below 1 - `--loss` twice in a row.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from bench import datasets

BUILDS = datasets.REPOSITORY / "build" / "against"
RUN = """
import itertools, json, sys, time
# An editable install would be found before any folder of sys.path.
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
import headrace
from headrace import DataLoader, ImageFiles, transforms as T
assert headrace.__file__.startswith(sys.argv[1]), headrace.__file__
normalise = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
recipes = {
    "train": [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), normalise],
    "eval": [T.Resize(256), T.CenterCrop(224), T.ToTensor(), normalise],
}
files = json.loads(sys.argv[2])
loaders = {
    name: DataLoader(ImageFiles(files, transform=T.Compose(steps)), 32, shuffle=True, num_workers=1, seed=1)
    for name, steps in recipes.items()
}
sys.path.append(sys.argv[3])
try:
    from torchvision_shim import import_torchvision
    V = import_torchvision().transforms
except ImportError:
    V = None
if V is not None:
    from PIL import Image
    normalise = V.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    step = V.Compose([V.RandomResizedCrop(224), V.RandomHorizontalFlip(), V.ToTensor(), normalise])
    class Opened(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)
        def __getitem__(self, index):
            return step(Image.open(files[index]).convert("RGB"))
    loaders["deferred"] = DataLoader(Opened(), 32)  # images of a dataset of one's own, in this process
    assert loaders["deferred"].route == "deferred"
took = {}
for name, loader in loaders.items():
    torch.manual_seed(1)
    for batch in loader:  # the files' pages, the slots of the pool
        pass
    begin = time.process_time()
    for batch in itertools.chain.from_iterable(itertools.repeat(loader, 2)):
        pass
    took[name] = (time.process_time() - begin) / (2 * len(files))
print(json.dumps(took))
"""


def built(name: str, tree: Path, *options: str) -> Path:
    """A folder with the package built from a source tree by pip with `options`."""
    site = BUILDS / f"{name}-site"
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--target", str(site), *options, str(tree)], check=True)
    return site


def checked_out(commit: str) -> tuple[str, Path]:
    """The name of a commit, and a folder with its files."""
    git = ["git", "-C", str(datasets.REPOSITORY)]
    sha = subprocess.run([*git, "rev-parse", commit], check=True, capture_output=True, text=True).stdout.strip()[:12]
    tree = BUILDS / sha
    if not tree.exists():
        tree.mkdir(parents=True)
        archive = subprocess.run([*git, "archive", sha], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    return sha, tree


def files(most: int = 160) -> list[str]:
    """ImageNet's files if they exist, otherwise headrace's photographs."""
    found = sorted(path for path in (datasets.data_folder() / "imagenet_dev").rglob("*") if path.is_file())
    found = found or sorted(datasets.PHOTOS.glob("*.jpg"))
    return [str(path) for path in found[:most]] * (1 if len(found) >= most else most // len(found))


def seconds(site: Path, images: list[str]) -> dict[str, float]:
    """CPU seconds per image of one run, by recipe."""
    tests = datasets.REPOSITORY / "tests" / "python"
    command = [sys.executable, "-c", RUN, str(site), json.dumps(images), str(tests)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    made: dict[str, float] = json.loads(out)
    return made


def ratios(now: Path, then: Path, rounds: int) -> dict[str, list[float]]:
    """The speed of `now` over that of `then`, by recipe, one ratio per round."""
    images = files()
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        sites = [now, then] if number % 2 else [then, now]
        took = {site: seconds(site, images) for site in sites}
        for recipe, mine in took[now].items():
            found.setdefault(recipe, []).append(took[then][recipe] / mine)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD~1")
    parser.add_argument("--loss", type=float, default=0.15, help="the share of the speed that may be lost")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    sha, tree = checked_out(options.commit)
    # The editable install has left the object files of the working tree, so its build is short.
    then, now = built(sha, tree, f"-Cbuild-dir={BUILDS / f'{sha}-build'}"), built("now", datasets.REPOSITORY)
    for _ in range(2):
        found = ratios(now, then, options.rounds)
        for recipe, values in found.items():
            spread = f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
            print(f"{recipe}: {spread} times the speed of {sha}, median and range of {len(values)} rounds")
        if all(statistics.median(values) >= 1 - options.loss for values in found.values()):
            return 0
    print(f"a recipe lost more than {options.loss:.0%} of its speed, twice", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
