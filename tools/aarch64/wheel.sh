#!/usr/bin/env bash
# Cross-builds a wheel for 64-bit Arm, and runs tests on it under qemu-user beside the wheels of torch, torchvision, Pillow
# and NumPy for Arm. On Debian, with the Python of its package python3, whose headers for arm64 it has.
# Usage: tools/aarch64/wheel.sh [TESTS...]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/python/contract tests/python/recipe/arithmetic/test_resize_exact.py tests/python/loading/epoch/test_old_states.py
  tests/python/loading/epoch/test_order.py tests/python/loading/native/test_loaders_in_threads.py tests/python/loading/native/test_turns.py)
build=build/aarch64-wheel
root=$PWD/$build/root

status=0
tools/aarch64/sysroot.sh "$root" python3-dev libstdc++6 || status=$?
if [ $status -eq 77 ]; then exit 0; fi
[ $status -eq 0 ] || exit $status
version=$(basename "$(readlink "$root/usr/bin/python3")")  # python3.11
number=${version#python}
tag=${number/./}
python=${PYTHON:-$version}
if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" != "$number" ]; then
  echo "the wheel is for $version: set PYTHON to an interpreter of this version" >&2
  exit 1
fi

# What runs: the wheels for Arm, without the packages that they need on x86 only.
"$python" -m venv $build/env
pip=("$build/env/bin/python" -m pip --quiet --disable-pip-version-check)
# shellcheck disable=SC2046  # a requirement a word
"${pip[@]}" install cmake ninja $("$build/env/bin/python" tools/requirements.py build)
platforms=()
for glibc in 2_28 2_27 2_26 2_17; do platforms+=(--platform "manylinux_${glibc}_aarch64"); done
"${pip[@]}" install --upgrade --target $build/site --no-deps --only-binary=:all: --platform manylinux2014_aarch64 "${platforms[@]}" \
  --python-version "$number" --implementation cp --abi "cp$tag" --abi abi3 --abi none \
  torch==2.8.0 torchvision==0.23.0 Pillow==13.0.0 numpy==2.3.5 tqdm sympy mpmath networkx jinja2 markupsafe fsspec filelock \
  typing_extensions pytest hypothesis attrs sortedcontainers packaging iniconfig pluggy pygments setuptools

suffix=.cpython-$tag-aarch64-linux-gnu.so
rm -rf $build/wheels $build/headrace
CMAKE_TOOLCHAIN_FILE=$PWD/tools/aarch64/toolchain.cmake _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=$suffix \
  CXXFLAGS="-isystem $root/usr/include" PATH="$PWD/$build/env/bin:$PATH" "${pip[@]}" wheel --no-deps --no-build-isolation \
  -C "cmake.define.Python_INCLUDE_DIR=$root/usr/include/$version" -C "cmake.define.PYTHON_MODULE_EXTENSION=$suffix" \
  -C cmake.define.HEADRACE_CUDA=OFF -C cmake.define.HEADRACE_LIBJPEG_TURBO=BUNDLED -C cmake.define.HEADRACE_LIBDEFLATE=BUNDLED -C build-dir=$build/native --wheel-dir $build/wheels .
ls -l $build/wheels
"$build/env/bin/python" -m zipfile -e $build/wheels/*.whl $build/headrace
PYTHONPATH=$PWD/$build/headrace:$PWD/$build/site qemu-aarch64 -L "$root" "$root/usr/bin/$version" -m pytest -q -p no:cacheprovider \
  -m "not slow and not processes and not trainers" "${tests[@]}"
