// libFuzzer harness: the memory of a table of entry points, changed in any way between its calls, as a process with a
// stray pointer could. A list that is found is the one that was kept, or its beginning; no call fails or goes on for
// ever.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "core/jpeg/scan/entry_points.h"

namespace {

using namespace headrace;

constexpr size_t kLimit = 3000, kHead = 4096;
constexpr size_t kStep = 4;  // bytes of the input that say what is done next

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_lists: %s\n", what);
  __builtin_trap();
}

std::vector<EntryPoint> list_of(uint64_t key, size_t rows) {
  std::vector<EntryPoint> made(rows);
  for (uint32_t i = 0; i < rows; ++i)
    made[i] = {static_cast<uint32_t>(key) << 16 | i, {static_cast<int16_t>(i), static_cast<int16_t>(key), 1}};
  return made;
}

void check(const EntryPoints& points, uint64_t key) {
  std::vector<EntryPoint> found;
  points.find(key, &found);
  require(found == list_of(key, found.size()), "another list than the one that was kept");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr EntryPoints::Secrets kSecrets{0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                          0xD6E8FEB86659FD93, 0xA0761D6478BD642F};
  EntryPoints points(kLimit, kSecrets);
  const std::span<uint8_t> memory = points.bytes();
  for (size_t at = 0; at + kStep <= size; at += kStep) {
    const uint8_t kind = data[at], key = data[at + 1] % 32, value = data[at + 2], more = data[at + 3];
    const size_t position = (size_t{data[at + 1]} << 8 | value) % 600;
    switch (kind % 8) {
      case 0:
      case 1:
        points.keep(key, list_of(key, value % 64));
        break;
      case 2:
        check(points, key);
        break;
      case 3:
        memory[position] = more;
        break;  // of the head
      case 4:
        memory[kHead + position % kLimit] = more;
        break;
      case 5:
        memory[(size_t{more} << 8 | value) % memory.size()] ^= static_cast<uint8_t>(kind);
        break;
      case 6: {  // a copy of other bytes of the table: a list, a slot, a number
        const size_t from = kHead + 8 * (value % (kLimit / 8)), to = kind < 128 ? 8 * (more % 60) : kHead + 8 * more;
        std::copy_n(memory.begin() + static_cast<ptrdiff_t>(from), 8, memory.begin() + static_cast<ptrdiff_t>(to));
        break;
      }
      default:
        for (const EntryList& one : points.all())
          require(one.points == list_of(one.key, one.points.size()), "a list that was not kept");
    }
  }
  for (uint64_t key = 0; key < 32; ++key) check(points, key);
  static_cast<void>(points.is_full());
  static_cast<void>(points.counts());
  return 0;
}
