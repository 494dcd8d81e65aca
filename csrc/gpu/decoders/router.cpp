// Checks the limits that NVIDIA documents for nvJPEG's hardware backend.
#include "gpu/decoders/router.h"

#include "core/jpeg/planes/plane_layout.h"

namespace headrace {
namespace {

constexpr int kLeast = 16, kMost = 16384;  // pixels along an edge
constexpr int64_t kMostPixels = 16 << 20;  // beyond this, whole planes cost more than decoding a crop on the CPU
constexpr int kBaseline = 0xC0;

bool same_chroma(const JpegHeader& header) {
  const auto& c = header.component;
  return c[1].h == 1 && c[1].v == 1 && c[2].h == 1 && c[2].v == 1;
}

}  // namespace

const char* not_for_device(const JpegHeader& header) {
  if (header.progressive) return "progressive";
  if (header.arithmetic) return "arithmetic coding";
  if (header.frame != kBaseline) return "not baseline";
  if (header.scans != 1) return "more than one scan";
  if (header.size.width < kLeast || header.size.height < kLeast) return "smaller than the decoders take";
  if (header.size.width > kMost || header.size.height > kMost) return "larger than the decoders take";
  if (int64_t{header.size.width} * header.size.height > kMostPixels) return "so large that only its crop is decoded";
  if (header.components == 1) {
    const bool plain = header.component[0].h == 1 && header.component[0].v == 1;
    return plain ? nullptr : "gray with sampling factors";
  }
  if (header.components != 3) return "not one or three components";
  if (holds_rgb(header)) return "red, green and blue components";
  const JpegComponent& luma = header.component[0];
  if (!same_chroma(header) || luma.h > 2 || luma.v > 2) return "a sampling that the decoders lack";
  return nullptr;
}

}  // namespace headrace
