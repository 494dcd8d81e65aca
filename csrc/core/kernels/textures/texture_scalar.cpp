// The loops of texture channels for any processor.
namespace headrace {
namespace {
constexpr int kLanes = 2;  // the registers that every x86-64 and Arm processor has
}  // namespace
}  // namespace headrace

#include "core/kernels/textures/texture_lanes.h"

namespace headrace {

void make_texture_scalar(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target) {
  make_texture(texture, scratch, target);
}

}  // namespace headrace
