// The loops of progressive scans without special instructions, and the choice among the sets.
#include <cstdlib>
#include <string_view>

#include "core/jpeg/progressive/scan_loops_impl.h"

namespace headrace {
namespace {

struct Plain {
  static uint64_t nth(uint64_t mask, unsigned n) {
    for (; n != 0; --n) mask &= mask - 1;
    return mask & (~mask + 1);
  }
  static uint64_t deposit(uint64_t bits, uint64_t mask) {
    uint64_t result = 0;
    for (; mask != 0; mask &= mask - 1, bits >>= 1)
      if ((bits & 1) != 0) result |= mask & (~mask + 1);
    return result;
  }
};

}  // namespace

const ScanLoops kPlainScans{read_first, read_refining<Plain>};

const ScanLoops& scan_loops() {
  static const ScanLoops* const chosen = [] {
#if defined(__x86_64__)
    const char* isa = std::getenv("HEADRACE_ISA");  // as for the kernels
    const bool scalar = isa != nullptr && std::string_view(isa) == "scalar";
    // Zen 1 and Zen 2 have PDEP in microcode, a bit at a time.
    const bool slow = __builtin_cpu_is("znver1") || __builtin_cpu_is("znver2");
    if (!scalar && !slow && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("popcnt"))
      return &kBmi2Scans;
#endif
    return &kPlainScans;
  }();
  return *chosen;
}

}  // namespace headrace
