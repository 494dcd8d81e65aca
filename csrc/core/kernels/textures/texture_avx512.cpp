// The loops of texture channels for AVX-512.
#if defined(__x86_64__) || defined(_M_X64)
namespace headrace {
namespace {
constexpr int kLanes = 8;
}  // namespace
}  // namespace headrace

#include "core/kernels/textures/texture_lanes.h"

namespace headrace {

void make_texture_avx512(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target) {
  make_texture(texture, scratch, target);
}

}  // namespace headrace
#endif
