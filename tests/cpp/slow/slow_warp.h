// A slow reference for warps: each pixel by itself, as Pillow's documentation and borders define it.
#pragma once

#include "slow/slow_effects.h"

namespace headrace::test {

/// `size`: of the picture. The warp keeps it.
Picture warped(const Warp& warp, Size size, const Picture& picture);

}  // namespace headrace::test
