#!/usr/bin/env bash
# Installs headrace beside the torch of $PYTHON (which has CUDA) and runs everything that needs a GPU.
# From dist/*.whl of that Python where there is one: then neither compilers, libjpeg's headers nor a network are needed.
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
if [ -n "$wheel" ]; then
  install "$wheel"
else
  install --no-build-isolation .
fi
# nvJPEG and a peer, where their wheels lie beside ours.
for extra in dist/nvidia_nvjpeg*.whl dist/nvidia_nvimgcodec*.whl; do
  if [ -e "$extra" ]; then install "$extra"; fi
done
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -m bench.gpu.check --out "$out" ${2:+--images "$2"}
