// The loops of texture channels for AVX2.
#if defined(__x86_64__) || defined(_M_X64)
namespace headrace {
namespace {
constexpr int kLanes = 4;  // one register each: with two, butterflies do not fit the register file
}  // namespace
}  // namespace headrace

#include "core/kernels/textures/texture_lanes.h"

namespace headrace {

void make_texture_avx2(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target) {
  make_texture(texture, scratch, target);
}

}  // namespace headrace
#endif
