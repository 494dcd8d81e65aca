// Moves pixels without mixing them: crops, pads, flips and grays the rows of an image.
#include "core/fuse/crop_pad_flip.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/pixel_math.h"
#include "core/kernels/resize/resample_table.h"

namespace headrace {
namespace {

void make_map(std::vector<int>& map, int from, int count, int size, PadMode mode, bool mirror) {
  map.resize(count);
  for (int i = 0; i < count; ++i) map[i] = padded_source(from + (mirror ? count - 1 - i : i), size, mode);
}

Span reach(int from, int count, int size, PadMode mode) {
  if (from >= 0 && from + count <= size) return {from, from + count};
  Span span{size, 0};
  for (int i = from; i < from + count; ++i) {
    const int at = padded_source(i, size, mode);
    if (at < 0) continue;
    span = {std::min(span.begin, at), std::max(span.end, at + 1)};
  }
  return span.size() > 0 ? span : Span{0, 1};  // nothing but fill: a decoder still needs a box
}

// Converts positions in the image to positions in the part that is pushed.
void shift(std::vector<int>& map, int origin, int count) {
  for (int& at : map) {
    if (at < 0) continue;
    at -= origin;
    if (at < 0 || at >= count) throw Error(Stage::kResize, "the decoded box misses pixels that the padding mirrors");
  }
}

}  // namespace

void gray_row(const uint8_t* from, int pixels, uint8_t* to) {
  for (int x = 0; x < pixels; ++x, from += kPixelBytes, to += kPixelBytes) {
    const uint8_t l = luma(from[0], from[1], from[2]);
    const uint8_t pixel[kPixelBytes] = {l, l, l, 0};
    std::memcpy(to, pixel, kPixelBytes);
  }
}

bool is_plain(const Take& take, Size image) {
  return take.box.inside(image) && !take.flip_horizontal && !take.flip_vertical;
}

Box needed_box(const Take& take, Size image) {
  const Span x = reach(take.box.x, take.box.width, image.width, take.pad_mode);
  const Span y = reach(take.box.y, take.box.height, image.height, take.pad_mode);
  return {x.begin, y.begin, x.size(), y.size()};
}

Box made_box(const PlanStage& stage, const Take& after) {
  const Box all = whole_image(stage.resize);
  return stage.effects.empty() ? needed_box(after, stage.resize) : all;
}

void CropPadFlip::begin(const Take& take, Size image, Box have, RowSink& next) {
  take_ = &take;
  next_ = &next;
  have_ = have;
  collected_ = 0;
  plain_ = is_plain(take, image);
  if (plain_) {
    if (take.gray) row_.reset(1, have.width * kPixelBytes);
    return;
  }
  make_map(map_x_, take.box.x, take.box.width, image.width, take.pad_mode, take.flip_horizontal);
  make_map(map_y_, take.box.y, take.box.height, image.height, take.pad_mode, take.flip_vertical);
  shift(map_x_, have.x, have.width);
  shift(map_y_, have.y, have.height);
  image_.reset(have.height, have.width * kPixelBytes);
  row_.reset(1, take.box.width * kPixelBytes);
}

void CropPadFlip::push(const uint8_t* rows, size_t stride, int count) {
  if (plain_ && !take_->gray) return next_->push(rows, stride, count);
  for (int i = 0; i < count; ++i, rows += stride) {
    if (plain_) {
      gray_row(rows, have_.width, row_.row(0));
      next_->push(row_.row(0), row_.stride(), 1);
    } else {
      std::memcpy(image_.row(collected_), rows, size_t(have_.width) * kPixelBytes);
      if (++collected_ == have_.height) emit_all();
    }
  }
}

void CropPadFlip::emit_all() {
  for (const int y : map_y_) {
    emit_row(y);
    if (take_->gray) gray_row(row_.row(0), take_->box.width, row_.row(0));
    next_->push(row_.row(0), row_.stride(), 1);
  }
}

void CropPadFlip::emit_row(int y) {
  const uint8_t fill[kPixelBytes] = {take_->fill[0], take_->fill[1], take_->fill[2], 0};
  uint8_t* to = row_.row(0);
  for (const int x : map_x_) {
    const bool filled = x < 0 || y < 0;
    std::memcpy(to, filled ? fill : image_.row(y) + ptrdiff_t(x) * kPixelBytes, kPixelBytes);
    to += kPixelBytes;
  }
}

}  // namespace headrace
