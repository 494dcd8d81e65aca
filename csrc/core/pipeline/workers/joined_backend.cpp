// Leases a slot for each batch and makes workers that choose a sample's recipe.
#include "core/pipeline/workers/joined_backend.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/pipeline/workers/sample_maker.h"

namespace headrace {
namespace {

/// A worker for each recipe, whose work counts as this one's.
class JoinedMaker final : public SampleWorker {
 public:
  JoinedMaker(const Kernels& kernels, const std::vector<SampleOptions>& kinds,
              const std::vector<AlignedArray<uint8_t>>& luts) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      makers_.push_back(std::make_unique<SampleMaker>(kernels, kinds[i], luts[i].data()));
      makers_.back()->count_in(stats);
    }
  }

  bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch, int sample,
            bool may_offload) override {
    return maker(draws).make(bytes, draws + 1, batch, sample, may_offload);
  }
  void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) override {
    maker(draws).make_from_pixels(image, draws + 1, batch, sample);
  }

 private:
  SampleMaker& maker(const double* draws) {
    const double number = draws[0];
    if (!(number >= 0 && number < static_cast<double>(makers_.size()))) {
      throw std::out_of_range("there is no recipe of this number");
    }
    return *makers_[static_cast<size_t>(number)];
  }

  std::vector<std::unique_ptr<SampleMaker>> makers_;
};

bool are_stored_alike(const SampleOptions& a, const SampleOptions& b) {
  return a.recipe.output == b.recipe.output && a.strides.sample_bytes == b.strides.sample_bytes &&
         a.strides.element_bytes == b.strides.element_bytes && a.strides.channels == b.strides.channels &&
         a.layout == b.layout && a.max_pixels == b.max_pixels && a.upright == b.upright && a.indices == b.indices;
}

}  // namespace

JoinedBackend::JoinedBackend(std::vector<SampleOptions> kinds, const Kernels& kernels, size_t slots_kept)
    : kinds_(std::move(kinds)), kernels_(kernels), slots_(slots_kept) {
  if (kinds_.empty()) throw std::invalid_argument("there is no recipe");
  for (const SampleOptions& one : kinds_) {
    if (!are_stored_alike(one, kinds_.front())) throw std::invalid_argument("the outputs of the recipes differ");
    if (one.recipe.varies() || one.texture != nullptr) throw std::invalid_argument("an output is of another kind");
    if (one.recipe.last_segment() > 0) throw std::invalid_argument("a recipe has a step that runs in Python");
    luts_.emplace_back().resize(one.lut.size());
    std::memcpy(luts_.back().data(), one.lut.data(), one.lut.size());
  }
}

void JoinedBackend::prepare(Batch& batch, BatchMemory memory) {
  slots_.prepare(batch, memory, static_cast<size_t>(batch.size()) * kinds_.front().strides.sample_bytes);
}

std::unique_ptr<SampleWorker> JoinedBackend::make_worker() {
  return std::make_unique<JoinedMaker>(kernels_, kinds_, luts_);
}

int JoinedBackend::draws() const {
  int most = 0;
  for (const SampleOptions& one : kinds_) most = std::max(most, one.recipe.draws);
  return 1 + most;
}

}  // namespace headrace
