// The loops of progressive scans for processors with BMI2 and POPCNT.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/jpeg/progressive/scan_loops_impl.h"

namespace headrace {
namespace {

struct Bmi2 {
  static uint64_t deposit(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }
  static uint64_t nth(uint64_t mask, unsigned n) { return _pdep_u64(uint64_t{1} << n, mask); }
};

}  // namespace

const ScanLoops kBmi2Scans{read_first, read_refining<Bmi2>};

}  // namespace headrace
#endif
