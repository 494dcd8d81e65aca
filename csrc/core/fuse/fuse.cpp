// Chains the sinks of a plan: take, resize, effects, take, resize, effects, ..., store.
#include "core/fuse/fuse.h"

#include <algorithm>
#include <cstring>

#include "core/fuse/crop_pad_flip.h"
#include "core/fuse/effect_sink.h"
#include "core/fuse/resampler.h"
#include "core/fuse/row_store.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/kernels/float_resize/float_resampler.h"
#include "core/kernels/opencv_resize/opencv_resampler.h"
#include "core/kernels/warp/warp_math.h"
#include "core/kernels/warp/warp_reach.h"

namespace headrace {
namespace {

// The positions along one axis that a resize in -> out reads for outputs [first, first + count).
Span read_by_resize(int in, int out, Filter filter, int first, int count) {
  if (in == out) return {first, first + count};
  if (filter == Filter::kOpencvBilinear) return OpencvAxis(in, out).span(first, count);
  return is_float_filter(filter) ? float_span(in, out, filter, first, count)
                                 : source_span(in, out, filter, first, count);
}

// The parts of a stage's images that must be made if the next take needs only a part.
struct StageParts {
  Box resized;
  Box changed;  // by the effects
};

// With effects that is everything, except for a single warp, whose outputs do not depend on each other.
StageParts parts_of(const Plan& plan, size_t index) {
  const PlanStage& stage = plan.stages[index];
  const Take& after = index + 1 < plan.stages.size() ? plan.stages[index + 1].take : plan.last;
  if (stage.effects.size() == 1 && stage.effects[0].kind == Effect::Kind::kWarp) {
    const Warp& warp = plan.warps[static_cast<size_t>(stage.effects[0].amount)];
    const Box changed = needed_box(after, warp.out);
    return {warp_reach(warp_job(warp), stage.resize, changed), changed};
  }
  const Box resized = made_box(stage, after);
  return {resized, stage.effects.empty() ? resized : whole_image(stage.made_size())};
}

// The part of an image that the first stage reads to make `want` of its resized image.
Box read_by_first(const PlanStage& first, Size image, const Box& want) {
  if (!is_plain(first.take, image)) return needed_box(first.take, image);
  const Box& box = first.take.box;
  const Span x = read_by_resize(box.width, first.resize.width, first.filter, want.x, want.width);
  const Span y = read_by_resize(box.height, first.resize.height, first.filter, want.y, want.height);
  return {box.x + x.begin, box.y + y.begin, x.size(), y.size()};
}

}  // namespace

Box decode_box(const Plan& plan, Size image) {
  if (plan.stages.empty()) return needed_box(plan.last, image);
  return read_by_first(plan.stages.front(), image, parts_of(plan, 0).resized);
}

Box kernel_box(const Plan& plan, Size image) {
  if (plan.stages.empty()) return needed_box(plan.last, image);
  const Take& after = plan.stages.size() > 1 ? plan.stages[1].take : plan.last;
  return read_by_first(plan.stages.front(), image, made_box(plan.stages.front(), after));
}

struct Fuser::State {
  explicit State(const Kernels& kernels) : kernels(kernels), store(kernels), raw_rows(kernels) {}

  struct StageSinks {
    explicit StageSinks(const Kernels& kernels)
        : resampler(kernels),
          float_resampler(*kernels.floats),
          opencv_resampler(*kernels.opencv),
          effect_sink(kernels) {}
    CropPadFlip crop_pad_flip;
    Resampler resampler;
    FloatResampler float_resampler;
    OpencvResampler opencv_resampler;
    EffectSink effect_sink;
  };

  StageSinks& stage(size_t index) {
    while (stages.size() <= index) stages.push_back(std::make_unique<StageSinks>(kernels));
    return *stages[index];
  }

  const Kernels& kernels;
  std::vector<std::unique_ptr<StageSinks>> stages;
  CropPadFlip last;
  RowStore store;
  RawRows raw_rows;
  RowBuffer tail;  // the last rows of an image in memory, copied so that they have slack
};

Fuser::Fuser(const Kernels& kernels) : state_(std::make_unique<State>(kernels)) {}
Fuser::~Fuser() = default;

RowSink& Fuser::begin(const Plan& plan, Size image, const Output& output) {
  State& s = *state_;
  Box have = decode_box(plan, image);  // the part of `image` whose rows the current stage receives
  int plane_stride = 0;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const PlanStage& stage = plan.stages[i];
    const bool last = i + 1 == plan.stages.size();
    const Take& after = last ? plan.last : plan.stages[i + 1].take;
    auto& [crop_pad_flip, resampler, float_resampler, opencv_resampler, effect_sink] = s.stage(i);
    const bool floats = is_float_filter(stage.filter), opencv = stage.filter == Filter::kOpencvBilinear;
    RowSink& resizer = floats   ? static_cast<RowSink&>(float_resampler)
                       : opencv ? static_cast<RowSink&>(opencv_resampler)
                                : resampler;
    crop_pad_flip.begin(stage.take, image, have, resizer);

    const Box& box = stage.take.box;
    const Box rows = is_plain(stage.take, image) ? Box{have.x - box.x, have.y - box.y, have.width, have.height}
                                                 : whole_image(box.size());
    const auto [want, changed] = parts_of(plan, i);
    image = stage.made_size();
    have = changed;
    RowSink* next = &s.store;
    if (!last) {
      next = &s.stage(i + 1).crop_pad_flip;
    } else if (!after.box.inside(image)) {
      next = &s.last;
    } else if (s.kernels.planar && !floats && !opencv && !output.rgbx && stage.effects.empty() && !after.gray &&
               box.width != image.width) {
      plane_stride = (after.box.width + kTableBlock - 1) / kTableBlock * kTableBlock;
    }
    if (!stage.effects.empty()) {
      effect_sink.begin(stage.effects, plan, stage.resize, want, changed, *next);
      next = &effect_sink;
    }
    const ResizeJob job{box.size(), stage.resize, stage.filter, stage.vertical_first, want, rows, plane_stride};
    floats   ? float_resampler.begin(job, *next)
    : opencv ? opencv_resampler.begin(job, *next)
             : resampler.begin(job, *next);
  }
  const Box& box = plan.last.box;
  if (box.inside(image)) {  // the store mirrors and grays
    s.store.begin(output, box.size(), &plan.last, box.x - have.x, box.y - have.y, plane_stride, plan.erased);
  } else {
    s.last.begin(plan.last, image, have, s.store);
    s.store.begin(output, box.size(), nullptr, 0, 0, 0, plan.erased);
  }
  if (!plan.stages.empty()) return s.stage(0).crop_pad_flip;
  return box.inside(image) ? static_cast<RowSink&>(s.store) : s.last;
}

void Fuser::run(const Plan& plan, const uint8_t* pixels, size_t stride, Size image, const Output& output) {
  RowSink& sink = begin(plan, image, output);
  const Box box = decode_box(plan, image);
  const uint8_t* from = pixels + size_t(box.y) * stride + size_t(box.x) * kPixelBytes;
  const size_t row_bytes = size_t(box.width) * kPixelBytes;
  const size_t after = stride * size_t(image.height - box.y) - size_t(box.x) * kPixelBytes;  // readable at `from`
  const size_t needed = row_bytes + kRowSlack;
  const int direct = after < needed ? 0 : static_cast<int>(std::min<size_t>((after - needed) / stride + 1, box.height));
  if (direct > 0) sink.push(from, stride, direct);
  if (direct == box.height) return;
  state_->tail.reset(box.height - direct, box.width * kPixelBytes);
  for (int y = direct; y < box.height; ++y) std::memcpy(state_->tail.row(y - direct), from + y * stride, row_bytes);
  sink.push(state_->tail.row(0), state_->tail.stride(), box.height - direct);
}

void Fuser::run(const Plan& plan, const RawImage& image, const Output& output) {
  if (image.channels == kPixelBytes) {
    return run(plan, image.data, static_cast<size_t>(image.row_stride), image.size, output);
  }
  state_->raw_rows.push(image, decode_box(plan, image.size), begin(plan, image.size, output));
}

}  // namespace headrace
