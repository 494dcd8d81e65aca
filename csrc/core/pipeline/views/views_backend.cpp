// Leases a slot for each batch and makes workers that write every view of a sample to it.
#include "core/pipeline/views/views_backend.h"

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/pipeline/views/views_maker.h"

namespace headrace {
namespace {

std::vector<size_t> row_bytes(const std::vector<SampleOptions>& views, bool stacked) {
  std::vector<size_t> bytes;
  for (const SampleOptions& view : views) bytes.push_back(view.strides.sample_bytes);
  if (!stacked) return bytes;
  return {std::accumulate(bytes.begin(), bytes.end(), size_t{0})};
}

}  // namespace

ViewsBackend::ViewsBackend(std::vector<SampleOptions> views, bool stacked, const Kernels& kernels, size_t slots_kept)
    : views_(std::move(views)), kernels_(kernels), layout_(row_bytes(views_, stacked)), slots_(slots_kept) {
  if (views_.empty()) throw std::invalid_argument("there is no view");
  for (const SampleOptions& view : views_) {
    if (view.recipe.draws != views_.front().recipe.draws)
      throw std::invalid_argument("the views differ in their draws");
    if (view.recipe.last_segment() > 0) throw std::invalid_argument("a view has a step that runs in Python");
    luts_.emplace_back().resize(view.lut.size());
    std::memcpy(luts_.back().data(), view.lut.data(), view.lut.size());
  }
}

std::vector<const Recipe*> ViewsBackend::views() const {
  std::vector<const Recipe*> recipes;
  for (const SampleOptions& view : views_) recipes.push_back(&view.recipe);
  return recipes;
}

void ViewsBackend::prepare(Batch& batch, BatchMemory memory) {
  if (!memory.views.empty()) {
    if (layout_.columns() < views_.size()) throw std::invalid_argument("stacked views are one piece of memory");
    batch.views = std::move(memory.views);
    return;
  }
  slots_.prepare(batch, memory, layout_.batch_bytes(static_cast<size_t>(batch.room)));
}

std::unique_ptr<SampleWorker> ViewsBackend::make_worker() {
  return std::make_unique<ViewsMaker>(kernels_, views_, luts_, layout_);
}

}  // namespace headrace
