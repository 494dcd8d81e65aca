// Chooses the lanes for this processor.
#include "core/jpeg/huffman/row_lanes.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace headrace {
namespace {

#if defined(__x86_64__) || defined(_M_X64)
enum class Wish { kWherePaid, kAlways, kNever };

Wish wish() {
  const char* const chosen = std::getenv("HEADRACE_HUFFMAN");
  const std::string_view name = chosen == nullptr ? "" : chosen;
  return name == "lanes" ? Wish::kAlways : name == "serial" ? Wish::kNever : Wish::kWherePaid;
}

const RowLanes* choose_avx512() {
  // A gather of 16 words takes 4.6 ns on Zen 4; far more where microcode protects from Downfall (Ice Lake).
  constexpr double kSlowGather = 15;
  static RowLanes always = kAvx512RowLanes;
  always.least = 1;
  if (!__builtin_cpu_supports("avx512vbmi2")) return nullptr;
  switch (wish()) {
    case Wish::kAlways:
      return &always;
    case Wish::kNever:
      return nullptr;
    default:
      return gather_ns_avx512() < kSlowGather ? &kAvx512RowLanes : nullptr;
  }
}
#endif

}  // namespace

const RowLanes* row_lanes_named([[maybe_unused]] const char* set) {
#if defined(__x86_64__) || defined(_M_X64)
  if (std::strcmp(set, "avx512") == 0) {
    static const RowLanes* const chosen = choose_avx512();
    return chosen;
  }
#endif
  return nullptr;
}

}  // namespace headrace
