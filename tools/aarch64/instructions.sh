#!/usr/bin/env bash
# Counts the instructions of each loop of resize, store, blocks, effects and mixing on 64-bit Arm, scalar and NEON: a
# table of instructions for one pixel or sample. Needs build/aarch64 (tools/aarch64/check.sh) and qemu-user.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=build/aarch64
gcc -shared -fPIC -O2 tools/aarch64/instructions.c -o $folder/libinstructions.so
aarch64-linux-gnu-g++ -std=c++20 -O2 -ffp-contract=off -Icsrc bench/kernels/loop_count.cpp $folder/libheadrace_core.a \
  -L build/aarch64-root/usr/lib/aarch64-linux-gnu -ljpeg -lpthread -o $folder/loop_count
emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=build/aarch64-root/usr/lib/aarch64-linux-gnu")
executed() { "${emulator[@]}" -plugin $folder/libinstructions.so $folder/loop_count "$@"; }

printf '| loop | scalar | NEON | ratio |\n|---|---|---|---|\n'
"${emulator[@]}" $folder/loop_count scalar | while read -r loop units; do
  for set in scalar neon; do echo "$(($(executed $set "$loop" 11) - $(executed $set "$loop" 1)))"; done | paste - - |
    awk -v loop="$loop" -v units="$units" \
      '{ printf "| %s | %.2f | %.2f | %.1f |\n", loop, $1 / 10 / units, $2 / 10 / units, $1 / $2 }'
done
