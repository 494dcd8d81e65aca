// The CPU's share of a sample that a device finishes.
#include "device_worker.h"

#include <array>
#include <cstring>

#include "../core/sample_maker.h"
#include "device_batch.h"
#include "router.h"

namespace headrace {
namespace {

// Bytes as they are: what a plan run on the CPU leaves to the kernel is the element table.
const uint8_t* identity_lut() {
  alignas(64) static const auto kEntries = [] {
    std::array<uint8_t, 3 * 256> entries{};
    for (size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<uint8_t>(i);
    return entries;
  }();
  return kEntries.data();
}

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
                        int sample, bool may_hand_on) {
  const int64_t begin = now_ns();
  auto& mine = static_cast<DeviceBatch&>(*batch);
  const JpegHeader header = plain_header(bytes, options_.max_pixels);
  const Plan plan = resolve(options_.recipe, draws, header.size);
  stats.add(Clock::kHeader, now_ns() - begin);
  if (may_hand_on && lane_ != nullptr && fits_kernel(plan) && not_for_device(header) == nullptr &&
      hand_on(bytes, header, plan, batch, sample)) {
    return false;
  }
  try {
    make_job(bytes, header, plan, mine, sample);
  } catch (const OutOfDeviceMemory& error) {  // no fault of the sample's
    batch->break_down(error.what());
  }
  return true;
}

void DeviceWorker::make_job(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan,
                            DeviceBatch& batch, int sample) {
  Stager& stager = *batch.area;
  const int64_t planned = now_ns();
  const Box box = decode_box(plan, header.size);
  SampleJob& job = batch.jobs[static_cast<size_t>(sample)];
  if (fits_kernel(plan)) {
    const PlaneLayout layout = plane_layout(header, box);
    const StagedBytes to = stager.take(layout.bytes);
    planes_.decode(bytes, header, layout, to.host);
    stats.add(Clock::kDecode, now_ns() - planned);
    job = builder_.build(plan, layout.at(to.device), stager);
  } else {
    job = finished_here(plan, stager, [&](const Plan& here, const Output& output) {
      rows_.decode(bytes, header, box, fuser_.begin(here, header.size, output));
    });
    stats.add(Clock::kDecode, now_ns() - planned);
  }
}

// False: the device has no memory for whole planes; the CPU needs no more than the crop's.
bool DeviceWorker::hand_on(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan,
                           const std::shared_ptr<Batch>& batch, int sample) {
  auto& mine = static_cast<DeviceBatch&>(*batch);
  const PlaneLayout whole = plane_layout(header, {0, 0, header.size.width, header.size.height});
  try {
    uint8_t* staged = mine.area->take_pinned(bytes.size());
    std::memcpy(staged, bytes.data(), bytes.size());
    const PlanarImage planes = whole.at(mine.area->take_device(whole.bytes));
    mine.jobs[static_cast<size_t>(sample)] = builder_.build(plan, planes, *mine.area);
    lane_->push({batch, sample, {{staged, bytes.size()}, planes}});
  } catch (const OutOfDeviceMemory&) {
    return false;
  }
  return true;
}

void DeviceWorker::make_from_pixels(const uint8_t* pixels, Size size, const double* draws, Batch& batch, int sample) {
  auto& mine = static_cast<DeviceBatch&>(batch);
  const Plan plan = resolve(options_.recipe, draws, size);
  try {
    mine.jobs[static_cast<size_t>(sample)] = from_pixels(plan, pixels, size, *mine.area);
  } catch (const OutOfDeviceMemory& error) {
    batch.break_down(error.what());
  }
}

SampleJob DeviceWorker::from_pixels(const Plan& plan, const uint8_t* pixels, Size size, Stager& stager) {
  const size_t stride = static_cast<size_t>(size.width) * kPixelBytes;
  if (!fits_kernel(plan)) {
    return finished_here(
        plan, stager, [&](const Plan& here, const Output& output) { fuser_.run(here, pixels, stride, size, output); });
  }
  const Box box = decode_box(plan, size);
  const size_t row = static_cast<size_t>(box.width) * kPixelBytes;
  const StagedBytes to = stager.take(row * static_cast<size_t>(box.height));
  for (int y = 0; y < box.height; ++y) {
    const uint8_t* from = pixels + static_cast<size_t>(box.y + y) * stride + static_cast<size_t>(box.x) * kPixelBytes;
    std::memcpy(to.host + static_cast<size_t>(y) * row, from, row);
  }
  return builder_.build(plan, pixels_at(to.device, row, box, size), stager);
}

template <class Run>
SampleJob DeviceWorker::finished_here(const Plan& plan, Stager& stager, Run run) {
  const Size size = plan.last.box.size();
  const ptrdiff_t row = ptrdiff_t{size.width} * kPixelBytes;
  const StagedBytes to = stager.take(static_cast<size_t>(row) * static_cast<size_t>(size.height));
  Plan as_it_is;
  as_it_is.last.box = {0, 0, size.width, size.height};
  as_it_is.erased = plan.erased;
  Plan here = plan;
  here.erased.clear();  // left to the kernel, as the element table is
  run(here, Output{to.host, 1, row, kPixelBytes, {1, 3, identity_lut()}});
  return builder_.build(as_it_is, pixels_at(to.device, static_cast<size_t>(row), as_it_is.last.box, size), stager);
}

}  // namespace headrace
