// Resizes an image row by row as its rows arrive, as OpenCV's bilinear resize of bytes does.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/row_buffer.h"
#include "core/kernels/opencv_resize/opencv_axis.h"
#include "core/kernels/opencv_resize/opencv_loops.h"
#include "core/plan/resize_job.h"

namespace headrace {

class OpencvResampler final : public RowSink {
 public:
  explicit OpencvResampler(const OpencvLoops& loops) : loops_(loops) {}
  /// Begins an image, as Resampler does: the horizontal pass comes first, and rows are passed on as RGBX.
  void begin(const ResizeJob& job, RowSink& next);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void emit_ready(int row);
  int16_t* sums_of(int row) { return reinterpret_cast<int16_t*>(sums_.row(row % 2)); }

  const OpencvLoops& loops_;
  RowSink* next_ = nullptr;
  OpencvAxis y_;
  AlignedArray<int32_t> start_;
  AlignedArray<int16_t> weight_;
  int columns_ = 0;
  int row_ = 0;                 // the source row that is pushed next
  int next_row_ = 0, end_ = 0;  // the output row that is made next, and the one after the last
  RowBuffer sums_;              // of the last two source rows that are needed: row r in r % 2
  RowBuffer out_;
};

}  // namespace headrace
