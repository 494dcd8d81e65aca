// Passes the rows of one image on to several sinks, to each the rows and columns of its own box.
#include "core/fuse/sinks/tee.h"

#include <algorithm>

namespace headrace {

void Tee::add(Box box, RowSink& sink) {
  if (parts_.empty()) {
    box_ = box;
  } else {
    const int right = std::max(box_.x + box_.width, box.x + box.width);
    const int bottom = std::max(box_.y + box_.height, box.y + box.height);
    box_.x = std::min(box_.x, box.x);
    box_.y = std::min(box_.y, box.y);
    box_.width = right - box_.x;
    box_.height = bottom - box_.y;
  }
  next_ = box_.y;
  parts_.push_back({box, &sink});
}

// A part's row is followed by the rest of the whole row and then its slack: always at least kRowSlack bytes.
void Tee::push(const uint8_t* rows, size_t stride, int count) {
  const int end = next_ + count;
  for (const auto& [box, sink] : parts_) {
    const int first = std::max(next_, box.y), last = std::min(end, box.y + box.height);
    if (first >= last) continue;
    const uint8_t* from = rows + static_cast<size_t>(first - next_) * stride;
    sink->push(from + static_cast<size_t>(box.x - box_.x) * kPixelBytes, stride, last - first);
  }
  next_ = end;
}

}  // namespace headrace
