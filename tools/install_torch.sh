#!/usr/bin/env bash
# Installs torch and torchvision into a virtual environment: small CPU builds where there is no NVIDIA driver.
# Usage: tools/install_torch.sh PYTHON_OF_THE_ENVIRONMENT
# Where your package index offers no CPU build of torch under this version, name one that does in PIP_EXTRA_INDEX_URL.
set -euo pipefail
python=$1
quiet=(-m pip install --quiet --disable-pip-version-check)
if "$python" -c 'import torch' >/dev/null 2>&1; then
  exit 0
fi
if [ -e /proc/driver/nvidia/version ]; then
  "$python" "${quiet[@]}" torch torchvision
else
  "$python" "${quiet[@]}" torch==2.13.0
  # Its dependencies would bring a CUDA build of torch; the parts that the tests compare with need none of its binaries.
  "$python" "${quiet[@]}" --no-deps torchvision==0.28.0
fi
