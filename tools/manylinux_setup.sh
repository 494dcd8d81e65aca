#!/usr/bin/env bash
# Prepares a manylinux image for headrace's wheels: the assembler of libjpeg-turbo's vector code, and CUDA's compiler.
# Called by cibuildwheel (pyproject.toml) in the image, as root. Written, not run.
set -euo pipefail
dnf install -y -q nasm dnf-plugins-core

case $(uname -m) in
  x86_64) folder=x86_64 ;;
  aarch64) folder=sbsa ;;
esac
dnf config-manager --add-repo "https://developer.download.nvidia.com/compute/cuda/repos/rhel8/$folder/cuda-rhel8.repo"
dnf install -y -q cuda-nvcc-13-0 cuda-cudart-devel-13-0
