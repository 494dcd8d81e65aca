#!/usr/bin/env bash
# Installs headrace beside the torch of $PYTHON (which has CUDA) and runs everything that needs a GPU.
# From dist/*.whl of that Python where there is one: then neither compilers, libjpeg's headers nor a network are needed.
# For the tests of nvJPEG put a wheel of nvidia-nvjpeg into dist/ too, where the Python has none.
# RUN: proofs (tests, long runs, sanitizers), figures, or own (tests and figures of datasets of one's own, which need
# torchvision); each ends within ten minutes.
# Usage: PYTHON=python3 tools/gpu_check.sh RUN OUT [IMAGES [OPTIONS of bench.gpu.check, such as --only tests]]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
run=${1:?proofs, figures or own}
out=${2:?a folder for the results}
site=$PWD/build/gpu-check/site
rm -rf "$site"
files_of() { (cd "$1" && find . -type f ! -name '*.so' ! -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum); }
install() { "$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$site" "$@"; }

tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(ls -t dist/headrace-*-"$tag"-*.whl 2>/dev/null | head -1 || true)
needs='numpy, PIL, pytest, torch, tqdm'
if [ "$run" != proofs ]; then needs="$needs, torchvision"; fi
"$python" -c "import $needs" || {
  echo "this needs $needs (a CUDA build of torch) in $python" >&2
  exit 1
}
# nvJPEG and peers, where their wheels are beside ours. All in one call: pip replaces folders that they share.
extras=$(ls dist/*.whl 2>/dev/null | grep -v '^dist/headrace-' || true)
if [ -n "$wheel" ]; then
  install "$wheel" $extras
  built_from=$(cd "$site" && "$python" -c 'from headrace import _gpu; print(_gpu.sources)')
  sources=$(find csrc -type f | LC_ALL=C sort | xargs sha256sum | cut -c1-64 | tr -d '\n' | sha256sum | cut -c1-64)
  if [ "$built_from" != "$sources" ] || ! diff <(files_of python/headrace) <(files_of "$site/headrace") >&2; then
    echo "$wheel was made of other sources: make wheel, or remove it" >&2
    exit 1
  fi
else
  install --no-build-isolation . $extras
fi
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -m bench.gpu.check "$run" --out "$out" ${3:+--images "$3"} "${@:4}"
