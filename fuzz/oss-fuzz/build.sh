#!/bin/bash -eu
# Builds the harnesses and their corpora into $OUT. OSS-Fuzz sets CXX, CXXFLAGS, LIB_FUZZING_ENGINE, SRC, WORK and OUT;
# JPEG names an installed libjpeg-turbo in place of its source.
out=${OUT:?} work=${WORK:?}
cd "$(dirname "$0")/../.." 2>/dev/null || true
[ -d fuzz/corpus ] || cd "$SRC/headrace"

if [ -z "${JPEG:-}" ]; then
  cmake -S "$SRC/libjpeg-turbo" -B "$work/jpeg" -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DCMAKE_INSTALL_PREFIX="$work/jpeg-installed"
  cmake --build "$work/jpeg" --target install -j "$(nproc)"
  JPEG="-I$work/jpeg-installed/include $work/jpeg-installed/lib/libjpeg.a"
fi

# libdeflate and zlib as the image's packages have them: their code is not what is tested.
for harness in fuzz_jpeg fuzz_png fuzz_tar fuzz_http fuzz_lists fuzz_wav; do
  # The list of sources, and the instruction sets of a few of them, are in one place.
  HARNESS=$harness OUT_FILE="$out/$harness" ENGINE="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" LIBJPEG="$JPEG" fuzz/run.sh build
done
zip -qj "$out/fuzz_jpeg_seed_corpus.zip" fuzz/corpus/*
zip -qj "$out/fuzz_png_seed_corpus.zip" fuzz/corpus_png/*
zip -qj "$out/fuzz_tar_seed_corpus.zip" fuzz/corpus_tar/*
zip -qj "$out/fuzz_http_seed_corpus.zip" fuzz/corpus_http/*
zip -qj "$out/fuzz_lists_seed_corpus.zip" fuzz/corpus_lists/*
zip -qj "$out/fuzz_wav_seed_corpus.zip" fuzz/corpus_wav/*
cp fuzz/jpeg.dict "$out/fuzz_jpeg.dict"
