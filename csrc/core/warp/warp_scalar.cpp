// Warps without vectors: the loop that the other sets are compared with.
#include <cstring>

#include "core/warp/warp_loops.h"

namespace headrace {

void run_warp_scalar(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to) {
  const size_t row_bytes = static_cast<size_t>(in.width) * kPixelBytes;
  const auto pixel = [from, row_bytes](int x, int y) {
    uint32_t one;
    std::memcpy(&one, from + static_cast<size_t>(y) * row_bytes + static_cast<size_t>(x) * kPixelBytes, kPixelBytes);
    return one;
  };
  const size_t out_bytes = static_cast<size_t>(job.warp.out.width) * kPixelBytes;
  to += static_cast<size_t>(window.y) * out_bytes;
  for (int y = window.y; y < window.y + window.height; ++y, to += out_bytes) {
    warp_row(job, y, window.x, window.x + window.width, in.width, in.height, pixel,
             [to](int x, uint32_t one) { std::memcpy(to + static_cast<size_t>(x) * kPixelBytes, &one, kPixelBytes); });
  }
}

}  // namespace headrace
