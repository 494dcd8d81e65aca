"""The names that programs use."""

# ruff: noqa: F401, F403, E402, I001
from __future__ import annotations

import copy
import decimal
import functools
import itertools
import pickle
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "python"))

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from torch.utils.data._utils.collate import default_collate_fn_map

from torchvision_shim import import_torchvision

torchvision = import_torchvision()

import torchvision.transforms.functional as F
from torchvision import datasets
from torchvision import transforms as V
from torchvision.transforms import v2 as V2

import headrace
from headrace import transforms as H

from fuzz.programs.world.data import *
from fuzz.programs.world.errors import *
from fuzz.programs.world.files import blobs, folder, paths
from fuzz.programs.world.steps import *
from fuzz.programs.world import steps as step_module
