// Runs the CPU's stages of a sample that a device finishes.
#include "gpu/batches/device_worker.h"

#include <cstring>
#include <optional>

#include "core/fuse/sinks/rgbx_output.h"
#include "core/pipeline/workers/sample_maker.h"
#include "gpu/batches/device_batch.h"
#include "gpu/decoders/router.h"

namespace headrace {
namespace {

PlanarImage pixels_at(const uint8_t* pixels, size_t stride, Box box, Size size) {
  PlanarImage image;
  image.colour = Colour::kRgbx;
  image.width = size.width;
  image.height = size.height;
  image.plane[0].data = pixels;
  image.plane[0].stride = static_cast<int32_t>(stride);
  image.plane[0].x0 = box.x;
  image.plane[0].y0 = box.y;
  return image;
}

}  // namespace

DeviceWorker::DeviceWorker(const SampleOptions& options, DecodeLane* lane)
    : options_(options), lane_(lane), fuser_(kernels()) {}

bool DeviceWorker::make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                        int sample, bool may_offload) {
  const int64_t begin = now_ns();
  auto& mine = static_cast<DeviceBatch&>(*batch);
  mine.jobs[static_cast<size_t>(sample)].skip = true;  // a refused offload left its job there
  std::optional<JpegHeader> known;                     // of a sample that comes back from the lane
  if (lane_ != nullptr) known = mine.headers[static_cast<size_t>(sample)];
  const JpegHeader header = known ? *known : plain_header(bytes, options_);
  batch->sizes[static_cast<size_t>(sample)] = header.size;
  const Plan plan = batch->plan_of(sample, options_.recipe, draws, header.size);
  const int64_t planned = now_ns();
  if (!known) stats.add(Clock::kHeader, begin, planned);
  if (may_offload && lane_ != nullptr && fits_kernel(plan) && not_for_device(header) == nullptr &&
      offload(bytes, header, plan, batch, sample))
    return false;
  try {
    make_job(bytes, header, plan, mine, sample);
  } catch (const OutOfDeviceMemory& error) {  // not an error of this sample
    batch->break_down(error.what());
  }
  return true;
}

void DeviceWorker::make_job(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan,
                            DeviceBatch& batch, int sample) {
  Stager& stager = *batch.area;
  const int64_t planned = now_ns();
  const Box box = fits_kernel(plan) ? kernel_box(plan, header.size) : decode_box(plan, header.size);
  SampleJob& job = batch.jobs[static_cast<size_t>(sample)];
  if (fits_kernel(plan)) {
    const PlaneLayout layout = plane_layout(header, box);
    const StagedBytes to = stager.take(layout.bytes);
    planes_.decode(bytes, header, layout, to.host, batch.entry_points.get());
    stats.add(Clock::kDecode, planned, now_ns());
    job = builder_.build(plan, layout.at(to.device), stager);
  } else {
    job = finished_here(plan, stager, [&](const Plan& here, const Output& output) {
      rows_.decode(bytes, header, box, fuser_.begin(here, header.size, output), batch.entry_points.get());
    });
    stats.add(Clock::kDecode, planned, now_ns());
  }
}

// False: the device has no memory for whole planes. The CPU needs only those of the crop.
bool DeviceWorker::offload(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan,
                           const std::shared_ptr<Batch>& batch, int sample) {
  const int64_t begin = now_ns();
  auto& mine = static_cast<DeviceBatch&>(*batch);
  const PlaneLayout whole = plane_layout(header, whole_image(header.size));
  try {
    uint8_t* staged = mine.area->take_pinned(bytes.size());
    std::memcpy(staged, bytes.data(), bytes.size());
    const PlanarImage planes = whole.at(mine.area->take_device(whole.bytes));
    mine.jobs[static_cast<size_t>(sample)] = builder_.build(plan, planes, *mine.area);
    mine.headers[static_cast<size_t>(sample)] = header;
    if (stats.recording()) stats.recorder->add("staging", begin, now_ns());  // before the lane may be done with it
    lane_->push({batch, sample, {{staged, bytes.size()}, planes}});
  } catch (const OutOfDeviceMemory&) {
    return false;
  }
  return true;
}

void DeviceWorker::make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) {
  auto& mine = static_cast<DeviceBatch&>(batch);
  const Plan plan = batch.plan_of(sample, options_.recipe, draws, image.size, options_.recipe.last_segment());
  try {
    mine.jobs[static_cast<size_t>(sample)] = from_pixels(plan, image, *mine.area);
  } catch (const OutOfDeviceMemory& error) {
    batch.break_down(error.what());
  }
}

SampleJob DeviceWorker::from_pixels(const Plan& plan, const RawImage& image, Stager& stager) {
  const Box box = fits_kernel(plan) ? kernel_box(plan, image.size) : decode_box(plan, image.size);
  if (!fits_kernel(plan)) {
    return finished_here(plan, stager, [&](const Plan& here, const Output& output) {
      raw_rows_.push(image, box, fuser_.begin(here, image.size, output));
    });
  }
  const size_t row = static_cast<size_t>(box.width) * kPixelBytes;
  const StagedBytes to = stager.take(row * static_cast<size_t>(box.height));
  expand(kernels(), image, box, to.host, row);
  return builder_.build(plan, pixels_at(to.device, row, box, image.size), stager);
}

template <class Run>
SampleJob DeviceWorker::finished_here(const Plan& plan, Stager& stager, Run run) {
  const Size size = plan.last.box.size();
  const ptrdiff_t row = ptrdiff_t{size.width} * kPixelBytes;
  const StagedBytes to = stager.take(static_cast<size_t>(row) * static_cast<size_t>(size.height));
  Plan rest = as_it_is(size);
  rest.erased = plan.erased;
  Plan here = plan;
  here.erased.clear();  // the kernel erases, and applies the element table
  run(here, rgbx_output(to.host, size));
  const PlanarImage image = pixels_at(to.device, static_cast<size_t>(row), rest.last.box, size);
  return builder_.build(rest, image, stager);
}

}  // namespace headrace
