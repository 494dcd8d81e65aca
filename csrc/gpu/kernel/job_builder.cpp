// Stages windows, weights and effects, and builds jobs that point to them.
#include "gpu/kernel/job_builder.h"

#include <algorithm>
#include <cstring>

#include "core/fuse/crop_pad_flip.h"
#include "core/kernels/warp/warp_math.h"

namespace headrace {
namespace {

TakeMap map_of(const Take& take, Size image) {
  TakeMap map;
  map.x = {take.box.x, take.box.width, image.width, take.flip_horizontal};
  map.y = {take.box.y, take.box.height, image.height, take.flip_vertical};
  map.gray = take.gray;
  map.pad = take.pad_mode;
  map.fill = pack_rgbx(take.fill[0], take.fill[1], take.fill[2]);
  return map;
}

Take take_all(Size image) { return {.box = whole_image(image)}; }

// Stages a copy of the records, and returns its address on the device.
template <class Record>
const Record* staged(const std::vector<Record>& records, Stager& stager) {
  if (records.empty()) return nullptr;
  const StagedBytes bytes = stager.take(records.size() * sizeof(Record));
  std::memcpy(bytes.host, records.data(), records.size() * sizeof(Record));
  return reinterpret_cast<const Record*>(bytes.device);
}

}  // namespace

OutputFormat output_format(Size size, const OutputStrides& strides) {
  OutputFormat format;
  format.width = size.width;
  format.height = size.height;
  format.channels = strides.channels;
  format.element_bytes = strides.element_bytes;
  format.channel_stride = strides.channel_stride;
  format.row_stride = strides.row_stride;
  format.pixel_stride = strides.pixel_stride;
  return format;
}

FuseLaunch launch_of(const SampleJob* there, std::span<const SampleJob> jobs, const OutputFormat& format) {
  FuseLaunch launch{there, static_cast<int32_t>(jobs.size()), format, format.width, format.height, false};
  for (const SampleJob& job : jobs) {
    if (job.skip || job.retouch.count == 0) continue;
    launch.width = std::max(launch.width, job.last.x.size);
    launch.height = std::max(launch.height, job.last.y.size);
    launch.retouches = true;
  }
  return launch;
}

bool fits_kernel(const Plan& plan) {
  for (const PlanStage& stage : plan.stages) {
    if (is_float_filter(stage.filter) || stage.filter == Filter::kOpencvBilinear) return false;
    const auto fits = [&](const Effect& one) {  // the image keeps the size of the stage's, also between effects
      if (one.kind == Effect::Kind::kWarp) return plan.warps[static_cast<size_t>(one.amount)].out == stage.resize;
      return one.kind < Effect::Kind::kBoxBlur;  // mixes of chains and effects on tensors come after it
    };
    if (!std::ranges::all_of(stage.effects, fits)) return false;
  }
  if (plan.stages.size() <= 1) return true;
  const PlanStage &first = plan.stages[0], &second = plan.stages[1];  // a resize, then effects on a part of it
  return plan.stages.size() == 2 && first.effects.empty() && second.take.box.size() == second.resize &&
         !second.effects.empty();
}

SampleJob JobBuilder::build(const Plan& plan, const PlanarImage& image, Stager& stager) {
  SampleJob job;
  job.image = image;
  Size size{image.width, image.height};
  if (plan.stages.empty()) {
    job.first = map_of(take_all(size), size);
    job.x = windows(size.width, size.width, Filter::kNearest, 0, size.width, stager);
    job.y = windows(size.height, size.height, Filter::kNearest, 0, size.height, stager);
    job.last = map_of(plan.last, size);
  } else {
    const PlanStage &first = plan.stages.front(), &back = plan.stages.back();
    const Take& after = plan.stages.size() > 1 ? back.take : plan.last;
    job.first = map_of(first.take, size);
    const Box want = made_box(first, after);
    const Size in = first.take.box.size(), out = first.resize;
    job.x = windows(in.width, out.width, first.filter, want.x, want.width, stager);
    job.y = windows(in.height, out.height, first.filter, want.y, want.height, stager);
    job.vertical_first = first.vertical_first && in.width != out.width && in.height != out.height;
    job.last = map_of(first.effects.empty() ? after : take_all(out), out);
    if (!back.effects.empty()) {
      job.retouch.effects = staged(back.effects, stager);
      job.retouch.count = static_cast<int32_t>(back.effects.size());
      const size_t pixels = static_cast<size_t>(back.resize.width) * static_cast<size_t>(back.resize.height);
      job.retouch.picture = reinterpret_cast<uint32_t*>(stager.take_device(pixels * sizeof(uint32_t)));
      job.retouch.weights = staged(plan.weights, stager);
      std::vector<WarpJob> warps;
      for (const Warp& warp : plan.warps) warps.push_back(warp_job(warp));
      job.retouch.warps = staged(warps, stager);
      if (std::ranges::any_of(back.effects, [](const Effect& one) { return reads_other_pixels(one.kind); })) {
        job.retouch.other = reinterpret_cast<uint32_t*>(stager.take_device(pixels * sizeof(uint32_t)));
      }
      job.retouch.after = map_of(plan.last, back.resize);
    }
  }
  job.erased = staged(plan.erased, stager);
  job.erased_count = static_cast<int32_t>(plan.erased.size());
  return job;
}

AxisWindows JobBuilder::windows(int in, int out, Filter filter, int first, int count, Stager& stager) {
  const bool resizes = in != out;
  if (resizes) table_.build(in, out, filter, first, count);
  const auto outputs = static_cast<size_t>(count);
  const int32_t most_taps = resizes ? *std::max_element(table_.taps.data(), table_.taps.data() + count) : 1;
  const size_t weights = outputs * static_cast<size_t>(most_taps);
  const StagedBytes bytes = stager.take((2 * outputs + weights + kTile) * sizeof(int32_t));
  auto* to = reinterpret_cast<int32_t*>(bytes.host);
  for (size_t i = 0; i < outputs; ++i) {
    to[i] = resizes ? table_.start[i] : first + static_cast<int32_t>(i);
    to[outputs + i] = resizes ? table_.taps[i] : 1;
    for (size_t tap = 0; tap < static_cast<size_t>(most_taps); ++tap) {
      const size_t at = i * static_cast<size_t>(table_.taps_stride) + tap;
      to[(2 + tap) * outputs + i] = resizes ? table_.weight[at] : 1 << kWeightBits;
    }
  }
  std::memset(to + 2 * outputs + weights, 0, kTile * sizeof(int32_t));
  const auto* there = reinterpret_cast<const int32_t*>(bytes.device);
  return {there, there + outputs, there + 2 * outputs, count, first, most_taps};
}

}  // namespace headrace
