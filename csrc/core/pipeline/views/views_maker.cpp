// Makes all views of a sample from one decode.
#include "core/pipeline/views/views_maker.h"

#include "core/pipeline/workers/sample_maker.h"

namespace headrace {

ViewsMaker::ViewsMaker(const Kernels& kernels, const std::vector<SampleOptions>& views,
                       const std::vector<AlignedArray<uint8_t>>& luts, const GatherLayout& layout)
    : layout_(layout) {
  for (size_t i = 0; i < views.size(); ++i) {
    views_.push_back(std::make_unique<View>(kernels, views[i], luts[i].data()));
  }
}

void ViewsMaker::plan(const double* draws, Size image, const Batch& batch, int sample) {
  const auto place = static_cast<size_t>(batch.place(sample)), room = static_cast<size_t>(batch.room);
  const bool stacked = layout_.columns() < views_.size();
  uint8_t* first = batch.memory + (stacked ? place * layout_.row_bytes(0) : 0);
  for (size_t i = 0; i < views_.size(); ++i) {
    View& view = *views_[i];
    const size_t number = static_cast<size_t>(sample) * views_.size() + i;
    view.plan = batch.plan_of(static_cast<int>(number), view.options.recipe, draws, image);
    const bool apart = !batch.views.empty();
    uint8_t* begin = apart ? batch.views[i] : first;
    uint8_t* out = stacked ? begin : begin + place * layout_.row_bytes(i);
    view.output = output_at(out, view.options.strides, view.options, view.lut);
    if (!apart) first += stacked ? view.options.strides.sample_bytes : layout_.column_bytes(i, room);
  }
}

bool ViewsMaker::make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                      int sample, bool /*may_offload*/) {
  const JpegHeader header = decoder_.header(bytes, views_.front()->options, stats);
  batch->sizes[static_cast<size_t>(sample)] = header.size;
  plan(draws, header.size, *batch, sample);
  tee_.clear();
  for (const auto& view : views_) {
    if (batch->is_new_memory) decoder_.touch(view->output.base, view->options.strides.sample_bytes, stats);
    tee_.add(decode_box(view->plan, header.size), view->fuser.begin(view->plan, header.size, view->output));
  }
  decoder_.decode(bytes, header, tee_.box(), tee_, batch->entry_points.get(), stats);
  return true;
}

void ViewsMaker::make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) {
  plan(draws, image.size, batch, sample);
  for (const auto& view : views_) view->fuser.run(view->plan, image, view->output);
}

}  // namespace headrace
