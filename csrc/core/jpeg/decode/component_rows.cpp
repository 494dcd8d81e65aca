// The samples of one component that the next rows of pixels need: those of a row of MCUs, and the last ones above it.
#include "core/jpeg/decode/component_rows.h"

#include <algorithm>
#include <cstring>

namespace headrace {

void ComponentRows::begin(const JQUANT_TBL& quant, const Plane& plane, int blocks_x, int blocks_y, int mcus) {
  std::copy(std::begin(quant.quantval), std::end(quant.quantval), quant_);
  plane_ = plane;
  blocks_x_ = blocks_x;
  blocks_y_ = blocks_y;
  const size_t line = static_cast<size_t>(mcus) * static_cast<size_t>(blocks_x * kBlockEdge) + 2 * kSampleSlack;
  stride_ = (line + kCacheLine - 1) / kCacheLine * kCacheLine;
  memory_.resize(stride_ * static_cast<size_t>((kGroupsAbove + kGroups) * blocks_y));
}

void ComponentRows::advance(int mcu_row) {
  // Copied even for the first row, whose rows above do not exist: nothing reads them.
  const size_t above = stride_ * static_cast<size_t>(kGroupsAbove * blocks_y_);
  std::memcpy(memory_.data(), memory_.data() + stride_ * static_cast<size_t>(kGroups * blocks_y_), above);
  first_ = (kGroups * mcu_row - kGroupsAbove) * blocks_y_;
}

void ComponentRows::invert(const BlockLoops& loops, const int16_t* coefficients, int mcu, int mcus, int line) {
  uint8_t* const to = row(first_ + kGroupsAbove * blocks_y_ + line * kBlockEdge) + mcu * blocks_x_ * kBlockEdge;
  loops.invert(coefficients, mcus * blocks_x_, quant_, to, stride_);
}

void ComponentRows::repeat_sides(bool left, bool right) {
  if (plane_.factor_x == 1) return;
  const int last = plane_.width - 1 - plane_.x0, begin = first_ + kGroupsAbove * blocks_y_;
  for (int y = begin; y < begin + kGroups * blocks_y_; ++y) {
    uint8_t* const samples = row(y);
    if (left) samples[-1] = samples[0];
    if (right) samples[last + 1] = samples[last];
  }
}

const uint8_t* ComponentRows::upsampled(const BlockLoops& loops, int x, int y, int count, uint8_t* scratch) const {
  const int at = x / plane_.factor_x, near = y / plane_.factor_y, odd_x = x % plane_.factor_x;
  const int offset = at - plane_.x0, samples = (odd_x + count + 1) / 2;  // number of samples that are widened
  const auto far = [&] { return row(neighbour(near, y & 1, plane_.height)) + offset; };
  switch (plane_.upsampling) {
    case Upsampling::kH2V1:
      loops.upsample_h2v1(row(near) + offset, samples, scratch);
      return scratch + odd_x;
    case Upsampling::kH2V2:
      loops.upsample_h2v2(row(near) + offset, far(), samples, scratch);
      return scratch + odd_x;
    case Upsampling::kH1V2:
      loops.upsample_h1v2(row(near) + offset, far(), (y & 1) != 0 ? 2 : 1, count, scratch);
      return scratch;
    case Upsampling::kNone:
    case Upsampling::kReplicate:
      break;
  }
  return row(near) + offset;
}

}  // namespace headrace
