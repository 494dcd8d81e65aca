// The sets of inner loops that a build holds; only kernels.cpp chooses among them.
#pragma once

#include "core/kernels/kernels.h"

namespace headrace {

extern const Kernels kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
/// Ahead of the stores. The batch lies beyond the caches and a row of a plane is too short for the hardware to see a
/// stream in it: measured on Zen 5, 41 us a sample without, 15 us with this, 14 us with non-temporal stores, which need
/// whole aligned lines, leave the cache cold for a small batch's reader, and want a fence. May point past the end: a
/// prefetch never faults.
inline constexpr int kPrefetchBytes = 2688;

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
void store_avx512(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                  const RowTarget& target);
/// Makes outputs of the row from its left on, as the table would that has this normalisation; how many pixels of them.
int store_normalised_avx2(const uint8_t* row, int pixels, bool mirror, const Normalisation& by,
                          const RowTarget& target);
#endif

}  // namespace headrace
