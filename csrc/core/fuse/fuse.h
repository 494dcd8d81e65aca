// Runs a plan: rows of a decoded image in, the finished elements of one output sample out, in one streaming pass.
#pragma once

#include <memory>
#include <vector>

#include "core/base/geometry.h"
#include "core/fuse/sinks/output.h"
#include "core/io/source/blob.h"
#include "core/kernels/resize/kernels.h"
#include "core/plan/plan.h"

namespace headrace {

/// The part of an image of size `image` that affects the plan's sample, and so must be decoded.
Box decode_box(const Plan& plan, Size image);

/// The same if effects, single warps too, read all of their image: the part that the device's kernel reads.
Box kernel_box(const Plan& plan, Size image);

/// Scratch memory and sinks of one worker, reused between samples so that the steady state allocates nothing.
class Fuser {
 public:
  explicit Fuser(const Kernels& kernels);
  ~Fuser();
  /// The sink for the rows of decode_box(plan, image), top to bottom. Valid until the next call. After the last row the
  /// whole sample is written; `plan` and `output` must live until then.
  RowSink& begin(const Plan& plan, Size image, const Output& output);
  /// The same for an image in memory, `stride` bytes per row, with no slack after its last row.
  void run(const Plan& plan, const uint8_t* pixels, size_t stride, Size image, const Output& output);
  /// The same for an image of any format.
  void run(const Plan& plan, const RawImage& image, const Output& output);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
