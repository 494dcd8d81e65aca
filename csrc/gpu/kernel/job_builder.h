// A plan and a decoded image as the kernels want them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/resample_table.h"
#include "core/plan/plan.h"
#include "core/rows/output.h"
#include "gpu/kernel/sample_job.h"

namespace headrace {

/// The same bytes in two places: where the CPU writes them, and where the device will find them.
struct StagedBytes {
  uint8_t* host = nullptr;
  uint8_t* device = nullptr;
};

/// Gives memory that will be on the device when the kernel runs.
class Stager {
 public:
  virtual ~Stager() = default;
  /// 256-byte aligned. Any thread. Throws std::runtime_error where there is no memory.
  virtual StagedBytes take(size_t bytes) = 0;
  /// The device's memory alone, for what kernels keep there. As take().
  virtual uint8_t* take_device(size_t bytes) = 0;
};

/// The format of a launch whose samples lie so in memory; its element table is left to the caller.
OutputFormat output_format(Size size, const OutputStrides& strides);

/// A launch of these jobs, which lie `there` on the device.
FuseLaunch launch_of(const SampleJob* there, std::span<const SampleJob> jobs, const OutputFormat& format);

/// Whether the kernels can run a plan: it resizes once at most, and before its effects.
bool fits_kernel(const Plan& plan);

/// Builds jobs; one a worker, for the memory of its tables.
class JobBuilder {
 public:
  /// `image` as the device will see it; it holds decode_box(plan, size). Output and skip are left to the caller.
  SampleJob build(const Plan& plan, const PlanarImage& image, Stager& stager);

 private:
  AxisWindows stage(int in, int out, Filter filter, int first, int count, Stager& stager);

  ResampleTable table_;
};

}  // namespace headrace
