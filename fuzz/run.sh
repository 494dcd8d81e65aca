#!/bin/sh
# Builds the JPEG fuzzer with clang under ASan + UBSan and runs it: fuzz/run.sh [seconds] [more seed folders...]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# -eq 0 ] || shift
for compiler in "${CXX:-}" clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do
  [ -n "$compiler" ] && command -v "$compiler" >/dev/null && break
  compiler=
done
[ -n "$compiler" ] || { echo "fuzz/run.sh needs clang: apt-get install clang libclang-rt-14-dev" >&2; exit 1; }

out=build/fuzz
mkdir -p "$out/found" "$out/crashes"
core=csrc/core
"$compiler" -std=c++20 -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
  -fno-sanitize-recover=undefined -Icsrc -o "$out/fuzz_jpeg" fuzz/fuzz_jpeg.cpp \
  $core/jpeg/*.cpp $core/planes/*.cpp -ljpeg

[ ! -d fuzz/regressions ] || set -- fuzz/regressions "$@"
# New inputs go to the first folder; the others are only read.
exec "$out/fuzz_jpeg" -max_total_time="$seconds" -max_len=16384 -timeout=10 -print_final_stats=1 \
  -artifact_prefix="$out/crashes/" "$out/found" fuzz/corpus "$@"
