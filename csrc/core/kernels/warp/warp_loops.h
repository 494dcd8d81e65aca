// PIL.Image.transform of whole images, one function per instruction set. All give the same bytes as the scalar one.
#pragma once

#include <cstdint>

#include "core/base/geometry.h"
#include "core/kernels/warp/warp_math.h"

namespace headrace {

/// Warps an image of size `in` into one of size job.warp.out, both RGBX rows without gaps; they must not overlap.
/// Writes only the outputs of `window`, and reads only warp_reach().
using RunWarp = void (*)(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to);

void run_warp_scalar(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to);
#if defined(__x86_64__) || defined(_M_X64)
void run_warp_avx2(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to);
void run_warp_avx512(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to);
#endif
void run_warp_neon(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to);

}  // namespace headrace
