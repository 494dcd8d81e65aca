#!/bin/sh
# Builds a fuzzer with clang under ASan + UBSan and runs it: [HARNESS=fuzz_png|fuzz_tar|fuzz_http|fuzz_lists|fuzz_wav] fuzz/run.sh [seconds] [more seed folders...]
# `fuzz/run.sh build` builds only, for OSS-Fuzz: into OUT_FILE, with CXXFLAGS' sanitizers, ENGINE and LIBJPEG.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# -eq 0 ] || shift
for compiler in "${CXX:-}" clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do
  [ -n "$compiler" ] && command -v "$compiler" >/dev/null && break
  compiler=
done
[ -n "$compiler" ] || { echo "fuzz/run.sh needs clang: apt-get install clang libclang-rt-14-dev" >&2; exit 1; }

harness=${HARNESS:-fuzz_jpeg}
case $harness in
  fuzz_jpeg) out=build/fuzz corpus=fuzz/corpus libraries=-ljpeg
    sources="csrc/core/jpeg/sequential/*.cpp csrc/core/jpeg/huffman/*[!2].cpp csrc/core/jpeg/ahead/*.cpp csrc/core/jpeg/transcode/*.cpp csrc/core/jpeg/planes/*.cpp csrc/core/jpeg/progressive/*[!2].cpp csrc/core/jpeg/scan/*.cpp csrc/core/jpeg/decode/*.cpp csrc/core/jpeg/idct/*_scalar.cpp" ;;
  fuzz_png) out=build/fuzz_png corpus=fuzz/corpus_png sources="csrc/core/png/*.cpp" libraries="-ldeflate -lz" ;;
  fuzz_tar) out=build/fuzz_tar corpus=fuzz/corpus_tar sources="csrc/core/io/tar/*tar*.cpp" libraries= ;;
  fuzz_http) out=build/fuzz_http corpus=fuzz/corpus_http libraries=-pthread
    sources="csrc/core/io/http/answer_head.cpp csrc/core/io/http/range_*.cpp csrc/core/io/remote/byte_store.cpp csrc/core/io/tar/tar_walk.cpp" ;;
  fuzz_lists) out=build/fuzz_lists corpus=fuzz/corpus_lists libraries=
    sources="csrc/core/jpeg/scan/shared_lists.cpp csrc/core/jpeg/scan/entry_points.cpp" ;;
  fuzz_wav) out=build/fuzz_wav corpus=fuzz/corpus_wav libraries= sources="csrc/core/audio/wav_header.cpp csrc/core/audio/wav_samples.cpp" ;;
  *) echo "HARNESS is fuzz_jpeg, fuzz_png, fuzz_tar, fuzz_http, fuzz_lists or fuzz_wav, not $harness" >&2; exit 1 ;;
esac
mkdir -p "$out/found" "$out/crashes"
options="-std=c++20 -g -O1 -fno-omit-frame-pointer -Icsrc -Itests/cpp"
if [ "$seconds" = build ]; then
  options="$options ${CXXFLAGS:-}" objects= engine=${ENGINE:?} binary=${OUT_FILE:?}
  [ "$harness" != fuzz_jpeg ] || libraries=${LIBJPEG:-$libraries}
else
  options="$options -fno-sanitize-recover=undefined" binary=$out/$harness
  objects=-fsanitize=fuzzer-no-link,address,undefined engine=-fsanitize=fuzzer,address,undefined
fi
if [ "$harness" = fuzz_jpeg ] && [ "$(uname -m)" = x86_64 ]; then
  # Of the loops only these files may use wider instructions.
  wide="-mavx2 -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vbmi2 -mavx512vnni"
  for set in idct/block_loops_avx2:-mavx2 "idct/block_loops_avx512:$wide" "huffman/row_lanes_avx512:$wide"; do
    file=${set%%:*}
    # shellcheck disable=SC2086 - options
    "$compiler" $options $objects ${set#*:} -c "csrc/core/jpeg/$file.cpp" -o "$out/${file#*/}.o"
    sources="$sources $out/${file#*/}.o"
  done
  # shellcheck disable=SC2086 - options
  "$compiler" $options $objects -mbmi -mbmi2 -mpopcnt \
    -c csrc/core/jpeg/progressive/scans_bmi2.cpp -o "$out/scans_bmi2.o"
  sources="$sources $out/scans_bmi2.o"
fi
# shellcheck disable=SC2086 - patterns and options
"$compiler" $options $engine -o "$binary" "fuzz/$harness.cpp" $sources $libraries
[ "$seconds" != build ] || exit 0

[ "$harness" != fuzz_jpeg ] || [ ! -d fuzz/regressions ] || set -- fuzz/regressions "$@"
[ "$harness" != fuzz_jpeg ] || set -- "$@" -dict=fuzz/jpeg.dict
# New inputs go to the first folder; the others are only read.
exec "$out/$harness" -max_total_time="$seconds" -max_len=16384 -timeout=10 -print_final_stats=1 \
  -artifact_prefix="$out/crashes/" "$out/found" "$corpus" "$@"
