// Resizes an image row by row as its rows arrive, in Pillow's two passes, keeping only the rows a window still needs.
#pragma once

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/kernels/resize/kernels.h"
#include "core/plan/resize_job.h"

namespace headrace {

class Resampler final : public RowSink {
 public:
  explicit Resampler(const Kernels& kernels) : kernels_(kernels) {}
  /// Begins an image: the rows of job.have must be pushed, those of job.want go to `next`.
  void begin(const ResizeJob& job, RowSink& next);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void pass_on(const uint8_t* rows, size_t stride, int count);
  void collect(const uint8_t* rows, size_t stride, int count);
  void emit_ready();

  const Kernels& kernels_;
  RowSink* next_ = nullptr;
  ResampleTable x_, y_;
  bool along_x_ = false, along_y_ = false, vertical_first_ = false;
  int crop_x_ = 0;               // pixels to leave out at the left where the width stays
  int plane_stride_ = 0;         // of rows that the horizontal pass made
  int kept_bytes_ = 0;           // of a row in window_
  Span used_;                    // pushed rows that are needed
  int seen_ = 0;                 // rows pushed so far
  int next_row_ = 0;             // first output row still to come
  int first_ = 0;                // pushed row at window_.row(0)
  int kept_ = 0, capacity_ = 0;  // rows in window_
  RowBuffer window_;             // the rows that unfinished windows still need
  RowBuffer out_, tall_;         // rows that the horizontal and the vertical pass made
};

}  // namespace headrace
