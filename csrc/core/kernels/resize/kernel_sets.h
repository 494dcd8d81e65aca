// The sets of inner loops that a build contains; only kernels.cpp chooses among them.
#pragma once

#include "core/kernels/resize/kernels.h"

namespace headrace {

extern const Kernels kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
/// Distance of the prefetch ahead of the stores. A batch exceeds the caches, and a row of a plane is too short for the
/// hardware to detect a stream. Into L2 (_MM_HINT_T1): lines wait there for hundreds of cycles of the memory without
/// taking the few buffers of L1 that loads need. Zen 4, a raw pack: 94 us per sample with prefetch into L1, 82 us into
/// L2; non-temporal stores are as fast, but they need whole aligned lines and a fence, and leave a batch out of the
/// cache for its consumer. The address may be past the end: a prefetch never faults.
inline constexpr int kPrefetchBytes = 2688;

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
void rgb_to_rgbx_avx2(const uint8_t* rgb, int pixels, uint8_t* rgbx);
void store_avx512(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                  const RowTarget& target);
/// Stores output pixels from the left, as the table of this normalisation would. Returns their number, which may be 0.
int store_normalised_avx2(const uint8_t* row, int pixels, bool mirror, const Normalisation& by,
                          const RowTarget& target);
#endif
// Only builds for Arm have the loops of NEON: for other processors CMakeLists.txt omits these files, which have no
// guards.
extern const Kernels kNeonKernels;
void store_normalised_neon(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                           const RowTarget& target);

}  // namespace headrace
