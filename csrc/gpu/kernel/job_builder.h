// Turns a plan and a decoded image into a job for the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/fuse/sinks/output.h"
#include "core/kernels/resize/resample_table.h"
#include "core/plan/plan.h"
#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Two addresses of the same bytes: on the host, where the CPU writes them, and on the device.
struct StagedBytes {
  uint8_t* host = nullptr;
  uint8_t* device = nullptr;
};

/// Allocates memory whose contents are copied to the device before the kernel runs.
class Stager {
 public:
  virtual ~Stager() = default;
  /// `bytes` bytes, 256-byte aligned. Any thread. Throws std::runtime_error if there is no memory.
  virtual StagedBytes take(size_t bytes) = 0;
  /// Device memory alone, for data that kernels write. Otherwise as take().
  virtual uint8_t* take_device(size_t bytes) = 0;
};

/// The output format for samples of this size and layout. The caller sets the tables.
OutputFormat output_format(Size size, const OutputStrides& strides);

/// A launch of `jobs`. `there`: their address on the device.
FuseLaunch launch_of(const SampleJob* there, std::span<const SampleJob> jobs, const OutputFormat& format);

/// Whether the kernels can run a plan: it resizes at most once, and before its effects, which keep the size.
bool fits_kernel(const Plan& plan);

/// Builds jobs. Not thread-safe: it keeps the memory of its tables.
class JobBuilder {
 public:
  /// `image`: with device addresses; it holds at least kernel_box(plan, size). The caller sets `output` and `skip`.
  /// Throws as `stager` does.
  SampleJob build(const Plan& plan, const PlanarImage& image, Stager& stager);

 private:
  AxisWindows windows(int in, int out, Filter filter, int first, int count, Stager& stager);

  ResampleTable table_;
};

}  // namespace headrace
