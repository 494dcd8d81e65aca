// A box of the finished sample that is overwritten, and which of the recipe's values each element of it becomes.
#pragma once

#include <cstdint>

#include "core/base/counter_noise.h"
#include "core/base/geometry.h"

namespace headrace {

/// What the values of an erased box depend on: nothing, the channel, or the element.
enum class Noise : uint8_t { kNone, kChannel, kElement };

struct Erased {
  Box box;
  int value = 0;  // row of the recipe's values: the box's, or that of the lowest drawn value
  Noise noise = Noise::kNone;
  bool flip_horizontal = false, flip_vertical = false;  // the sample was flipped after the box was written
  uint16_t levels[3] = {};                              // kChannel: rows after `value`
  uint64_t state = 0;                                   // kElement: state of noise16
  bool operator==(const Erased&) const = default;
};

/// Counter, for noise16, of the element of channel c at column u and row v of the sample.
HEADRACE_HD inline int64_t noise_index(const Erased& erased, int c, int u, int v) {
  const Box& box = erased.box;
  const int x = erased.flip_horizontal ? box.x + box.width - 1 - u : u - box.x;
  const int y = erased.flip_vertical ? box.y + box.height - 1 - v : v - box.y;
  return (int64_t{c} * box.height + y) * box.width + x;
}

/// Row of the recipe's values that an element of the box becomes.
HEADRACE_HD inline int erased_row(const Erased& erased, int c, int u, int v) {
  if (erased.noise == Noise::kElement) return erased.value + noise16(erased.state, noise_index(erased, c, u, v));
  return erased.noise == Noise::kChannel ? erased.value + erased.levels[c] : erased.value;
}

}  // namespace headrace
