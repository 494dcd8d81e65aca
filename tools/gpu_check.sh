#!/usr/bin/env bash
# Installs headrace beside the torch of $PYTHON (which has CUDA) and runs everything that needs a GPU.
# From dist/*.whl of that Python where there is one: then neither compilers, libjpeg's headers nor a network are needed.
# For the tests of nvJPEG put a wheel of nvidia-nvjpeg into dist/ too, where the Python has none.
# Usage: PYTHON=python3 tools/gpu_check.sh OUT [IMAGES]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=${1:-build/gpu-check}
site=$PWD/build/gpu-check/site
rm -rf "$site"
install() { "$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$site" "$@"; }

tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(ls -t dist/headrace-*-"$tag"-*.whl 2>/dev/null | head -1 || true)
"$python" -c 'import numpy, PIL, pytest, torch, tqdm' || {
  echo "gpu-check needs numpy, Pillow, pytest, tqdm and a CUDA build of torch in $python" >&2
  exit 1
}
# nvJPEG and a peer, where their wheels lie beside ours. All in one call: pip replaces folders that they share.
extras=$(ls dist/nvidia_nvjpeg*.whl dist/nvidia_nvimgcodec*.whl 2>/dev/null || true)
if [ -n "$wheel" ]; then
  install "$wheel" $extras
else
  install --no-build-isolation . $extras
fi
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -m bench.gpu.check --out "$out" ${2:+--images "$2"}
