// Copies windows and weights to where the device finds them; what an axis that keeps its size does not need is left
// out.
#include "job_builder.h"

#include <cstring>

#include "../core/taker.h"

namespace headrace {
namespace {

TakeMap map_of(const Take& take, Size image) {
  TakeMap map;
  map.x = take.box.x;
  map.y = take.box.y;
  map.width = take.box.width;
  map.height = take.box.height;
  map.image_width = image.width;
  map.image_height = image.height;
  map.flip_x = take.flip_horizontal;
  map.flip_y = take.flip_vertical;
  map.gray = take.gray;
  map.pad = take.pad_mode;
  map.fill = packed(take.fill[0], take.fill[1], take.fill[2]);
  return map;
}

}  // namespace

OutputFormat output_format(Size size, const OutputLayout& layout) {
  OutputFormat format;
  format.width = size.width;
  format.height = size.height;
  format.channels = layout.channels;
  format.element_bytes = layout.element_bytes;
  format.channel_stride = layout.channel_stride;
  format.row_stride = layout.row_stride;
  format.pixel_stride = layout.pixel_stride;
  return format;
}

bool fits_kernel(const Plan& plan) {
  return plan.stages.empty() || (plan.stages.size() == 1 && plan.stages.front().effects.empty());
}

SampleJob JobBuilder::build(const Plan& plan, const PlanarImage& image, Stager& stager) {
  SampleJob job;
  job.image = image;
  Size size{image.width, image.height};
  if (plan.stages.empty()) {
    job.first = map_of({.box = {0, 0, size.width, size.height}}, size);
  } else {
    const PlanStage& only = plan.stages.front();
    job.first = map_of(only.take, size);
    const Box want = needed_box(plan.last, only.resize);
    const Size in = only.take.box.size(), out = only.resize;
    job.x = stage(in.width, out.width, only.filter, want.x, want.width, stager);
    job.y = stage(in.height, out.height, only.filter, want.y, want.height, stager);
    job.vertical_first = only.vertical_first && in.width != out.width && in.height != out.height;
    size = out;
  }
  job.last = map_of(plan.last, size);
  return job;
}

AxisWindows JobBuilder::stage(int in, int out, Filter filter, int first, int count, Stager& stager) {
  AxisWindows axis;
  if (in == out) return axis;
  table_.build(in, out, filter, first, count);
  const size_t outputs = static_cast<size_t>(count), stride = static_cast<size_t>(table_.taps_stride);
  const StagedBytes place = stager.take((2 + stride) * outputs * sizeof(int32_t));
  auto* to = reinterpret_cast<int32_t*>(place.host);
  std::memcpy(to, table_.start.data(), outputs * sizeof(int32_t));
  std::memcpy(to + outputs, table_.taps.data(), outputs * sizeof(int32_t));
  std::memcpy(to + 2 * outputs, table_.weight.data(), outputs * stride * sizeof(int32_t));
  const auto* there = reinterpret_cast<const int32_t*>(place.device);
  axis.start = there;
  axis.taps = there + outputs;
  axis.weight = there + 2 * outputs;
  axis.stride = table_.taps_stride;
  axis.first = first;
  return axis;
}

}  // namespace headrace
