// Resizes an image row by row as its rows arrive, in torch's two passes of float32: of bytes, which are rounded after
// both passes, or of the values that a table gives for them.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/row_buffer.h"
#include "core/kernels/float_resize/float_loops.h"
#include "core/plan/resize_job.h"

namespace headrace {

/// Gets the rows of a resize before they are rounded, from the top.
class FloatRowSink {
 public:
  virtual ~FloatRowSink() = default;
  /// `row`: pixels of four floats, of which the last means nothing.
  virtual void push(const float* row) = 0;
};

class FloatResampler final : public RowSink {
 public:
  explicit FloatResampler(const FloatLoops& loops) : loops_(loops) {}
  /// Begins an image, as Resampler does: the horizontal pass comes first, and rows are passed on as RGBX.
  void begin(const ResizeJob& job, RowSink& next);
  /// Begins an image whose bytes stand for other values: `map` has those of 256 bytes in three channels, [3][256].
  void begin(const ResizeJob& job, const float* map, FloatRowSink& next);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void begin_job(const ResizeJob& job);
  void map_row(const uint8_t* row, float* to) const;
  void map_along_x(const uint8_t* rows, size_t stride, int count, float* to, size_t to_stride);
  void pass_on(const float* row);
  void emit_ready();
  float* row_at(RowBuffer& rows, int index) { return reinterpret_cast<float*>(rows.row(index)); }

  const FloatLoops& loops_;
  RowSink* next_ = nullptr;
  const float* map_ = nullptr;  // null: the bytes are numbers, and so are the results
  FloatRowSink* values_ = nullptr;
  FloatTable x_, y_;
  bool along_x_ = false, along_y_ = false;
  int crop_x_ = 0;               // pixels to leave out at the left where the width stays
  int elements_ = 0;             // floats of a row that is made
  Span used_;                    // pushed rows that are needed
  int seen_ = 0;                 // rows pushed so far
  int next_row_ = 0;             // first output row still to come
  int first_ = 0;                // pushed row at window_.row(0)
  int kept_ = 0, capacity_ = 0;  // rows in window_
  AlignedArray<float> scratch_;
  RowBuffer window_;      // rows of floats, those that unfinished windows still need
  RowBuffer tall_, out_;  // a row of floats, and of bytes
};

}  // namespace headrace
