"""Data pipelines as people write them, for test_pipelines.py and test_deferred_pipelines.py."""

import pytest

from torchvision_shim import import_torchvision

try:
    import_torchvision()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)
