// Chooses the set of inner loops for this processor.
#include "core/kernels/resize/kernels.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#endif

#include "core/kernels/resize/kernel_sets.h"

namespace headrace {
namespace {

#if defined(__x86_64__) || defined(_M_X64)
// __builtin_cpu_supports of GCC 10 does not know this name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
         has_f16c();
}

// Ice Lake, Zen 4 and newer: these loops need byte permutes (VBMI) and byte dot products (VNNI).
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}
#endif

const Kernels& choose() {
  if (const char* name = std::getenv("HEADRACE_ISA"); name && *name) {
    if (const Kernels* named = kernels_named(name)) return *named;
    throw std::runtime_error(std::string("HEADRACE_ISA=") + name +
                             ": this processor or build lacks it; use scalar, avx2, avx512 or neon, or unset it");
  }
  for (const char* name : {"avx512", "avx2", "neon"}) {
    if (const Kernels* named = kernels_named(name)) return *named;
  }
  return kScalarKernels;
}

}  // namespace

void split_lut(const Lut& lut, uint8_t* planes) {
  const auto* from = static_cast<const uint8_t*>(lut.entries);
  const int bytes = lut.element_bytes;
  for (int c = 0; c < lut.channels; ++c, from += 256 * bytes, planes += 256 * bytes) {
    for (int i = 0; i < 256; ++i) {
      for (int b = 0; b < bytes; ++b) planes[b * 256 + i] = from[i * bytes + b];
    }
  }
}

const Kernels* kernels_named(const char* name) {
  if (std::strcmp(name, "scalar") == 0) return &kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
  if (std::strcmp(name, "avx2") == 0 && has_avx2()) return &kAvx2Kernels;
  if (std::strcmp(name, "avx512") == 0 && has_avx512()) return &kAvx512Kernels;
#elif defined(__aarch64__)
  if (std::strcmp(name, "neon") == 0) return &kNeonKernels;
#endif
  return nullptr;
}

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace headrace
