#!/usr/bin/env bash
# Compiles the core, the bindings and the GPU path's host code for macOS on Arm, and links the core, on Linux: with Clang and
# the headers of macOS that the package ziglang brings. It runs nothing: for that see the job macos of ci.yml.
# Usage: tools/compile_for_macos.sh   (PYTHON: an interpreter with its headers; takes ten minutes on two cores)
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=$PWD/build/macos
mkdir -p "$out/objects"
[ -x "$out/env/bin/python" ] || "$python" -m venv "$out/env"
"$out/env/bin/python" -m pip install --quiet --disable-pip-version-check ziglang cmake ninja "pybind11>=2.13"
export PATH="$out/env/bin:$PATH"
for tool in cc c++ ar ranlib; do
  target=$([[ $tool = c* ]] && echo "-target aarch64-macos" || true)
  printf '#!/bin/sh\nexec "%s" -m ziglang %s %s "$@"\n' "$out/env/bin/python" "$tool" "$target" >"$out/$tool"
  chmod +x "$out/$tool"
done

cmake -D FOLDER="$out" -P cmake/source_archives.cmake >"$out/archives.log" 2>&1
build_library() { # NAME and options: builds $out/NAME-*.tar.gz and installs it into $out/NAME/install
  local name=$1
  shift
  tar -xzf "$out/$name"-*.tar.gz -C "$out"
  cmake -G Ninja -S "$(find "$out" -maxdepth 1 -type d -name "$name-*")" -B "$out/$name" -DCMAKE_SYSTEM_NAME=Darwin \
    -DCMAKE_SYSTEM_PROCESSOR=arm64 -DCMAKE_C_COMPILER="$out/cc" -DCMAKE_AR="$out/ar" -DCMAKE_RANLIB="$out/ranlib" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$out/$name/install" "$@" >"$out/$name.log"
  cmake --build "$out/$name" --target install >>"$out/$name.log"
}
build_library libjpeg-turbo -DCMAKE_BUILD_TYPE=MinSizeRel -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_TOOLS=OFF \
  -DWITH_TESTS=OFF -DREQUIRE_SIMD=ON
build_library libdeflate -DCMAKE_BUILD_TYPE=Release -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_COMPRESSION_SUPPORT=OFF \
  -DLIBDEFLATE_GZIP_SUPPORT=OFF -DLIBDEFLATE_BUILD_GZIP=OFF

options=(-std=c++20 -O1 -ffp-contract=off -Wall -Wextra -Icsrc -I"$out/libjpeg-turbo/install/include" -I"$out/libdeflate/install/include" -DHEADRACE_SOURCES='""')
options+=(-isystem "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')")
options+=(-isystem "$("$out/env/bin/python" -c 'import pybind11; print(pybind11.get_include())')")
compile() {
  "$out/c++" "${options[@]}" -c "$1" -o "$out/objects/${1//\//_}.o"
}
export -f compile
export out
declare -p options >"$out/options"
# For x86 only: *_avx2, *_avx512, *_bmi2. With CUDA only: cuda_device.
git ls-files 'csrc/*.cpp' | grep -vE '_(avx2|avx512|bmi2)\.cpp$|cuda_device\.cpp$' |
  xargs -P "$(nproc)" -I{} bash -c '. "$out/options"; compile {} || { echo "{} does not compile for macOS" >&2; exit 255; }'
"$out/c++" -dynamiclib -o "$out/libheadrace_core.dylib" "$out"/objects/csrc_core_*.o "$out/libjpeg-turbo/install/lib/libjpeg.a" \
  "$out/libdeflate/install/lib/libdeflate.a"
ls -l "$out/libheadrace_core.dylib"
