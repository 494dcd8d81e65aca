// Runs the stages of one sample.
#include "core/pipeline/workers/sample_maker.h"

namespace headrace {

Output output_at(uint8_t* base, const OutputStrides& strides, const SampleOptions& options, const uint8_t* lut) {
  return {base,
          strides.channel_stride,
          strides.row_stride,
          strides.pixel_stride,
          {strides.element_bytes, strides.channels, lut},
          options.erased.data()};
}

Output SampleMaker::output(Batch& batch, int sample, const Plan& /*plan*/) {
  const auto place = static_cast<size_t>(batch.place(sample));
  return output_at(batch.memory + options_.strides.offset_of(place), options_.strides, options_, lut_);
}

void SampleMaker::make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) {
  const Plan plan = batch.plan_of(sample, options_.recipe, draws, image.size, options_.recipe.last_segment());
  fuser_.run(plan, image, output(batch, sample, plan));
  finish(batch, sample);
}

void SampleMaker::store(const RawImage& image, Batch& batch, int sample) {
  const Plan plan = resolve(options_.recipe, nullptr, image.size, options_.recipe.steps.size());
  fuser_.run(plan, image, output(batch, sample, plan));
  finish(batch, sample);
}

bool SampleMaker::make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                       int sample, bool /*may_offload*/) {
  const JpegHeader header = decoder_.header(bytes, options_, *counted_);
  batch->sizes[static_cast<size_t>(sample)] = header.size;
  const Plan plan = batch->plan_of(sample, options_.recipe, draws, header.size);
  const Output out = output(*batch, sample, plan);
  RowSink& sink = fuser_.begin(plan, header.size, out);
  if (batch->is_new_memory && options_.strides.frames == 1) {
    const size_t each = options_.strides.sample_bytes;
    decoder_.touch(batch->memory + static_cast<size_t>(batch->place(sample)) * each, each, *counted_);
  }
  decoder_.decode(bytes, header, decode_box(plan, header.size), sink, batch->entry_points.get(), *counted_,
                  [&] { finish(*batch, sample); });
  return true;
}

}  // namespace headrace
