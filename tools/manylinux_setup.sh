#!/usr/bin/env bash
# Prepares a manylinux image for headrace's wheels: libjpeg-turbo, which the image has too old, and CUDA's compiler.
# Called by cibuildwheel (pyproject.toml) in the image, as root. Written, not run.
set -euo pipefail
version=3.1.3
commit=af9c1c268520a29adf98cad5138dafe612b3d318

dnf install -y -q cmake nasm git dnf-plugins-core
git clone -q --depth 1 --branch "$version" https://github.com/libjpeg-turbo/libjpeg-turbo /tmp/libjpeg-turbo
found=$(git -C /tmp/libjpeg-turbo rev-parse HEAD)
if [ "$found" != "$commit" ]; then
  echo "libjpeg-turbo $version is commit $found, not $commit: the tag has moved" >&2
  exit 1
fi
cmake -S /tmp/libjpeg-turbo -B /tmp/libjpeg-turbo/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
  -DENABLE_STATIC=OFF -DWITH_TURBOJPEG=OFF
cmake --build /tmp/libjpeg-turbo/build -j "$(nproc)" --target install
ldconfig

case $(uname -m) in
  x86_64) folder=x86_64 ;;
  aarch64) folder=sbsa ;;
esac
dnf config-manager --add-repo "https://developer.download.nvidia.com/compute/cuda/repos/rhel8/$folder/cuda-rhel8.repo"
dnf install -y -q cuda-nvcc-13-0 cuda-cudart-devel-13-0
