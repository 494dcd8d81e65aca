// Moves pixels without mixing them: crops, pads, flips and grays the rows of an image.
#pragma once

#include <vector>

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/plan/plan.h"

namespace headrace {

/// Writes R = G = B = Pillow's L of each pixel. `to` may be `from`.
void gray_row(const uint8_t* from, int pixels, uint8_t* to);

/// Whether the rows of the take are rows of the image, in order: no padding, no mirroring.
bool is_plain(const Take& take, Size image);

/// The part of the image that a take reads.
Box needed_box(const Take& take, Size image);

/// The part of a stage's resized image that must be made if `after` takes from it: with effects, all of it. A single
/// warp may need less, see decode_box.
Box made_box(const PlanStage& stage, const Take& after);

/// Applies a take and passes its rows on. A plain take streams: it passes on whole rows as pushed, even pixels outside
/// its box. Any other take collects the image first.
class CropPadFlip final : public RowSink {
 public:
  /// Begins an image of size `image`. The rows of `have`, a part of it that contains needed_box, must then be pushed.
  void begin(const Take& take, Size image, Box have, RowSink& next);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void emit_all();
  void emit_row(int y);

  const Take* take_ = nullptr;
  RowSink* next_ = nullptr;
  Box have_;
  bool plain_ = true;
  int collected_ = 0;
  RowBuffer image_, row_;
  std::vector<int> map_x_, map_y_;  // for each output column and row, that of image_; -1: fill
};

}  // namespace headrace
