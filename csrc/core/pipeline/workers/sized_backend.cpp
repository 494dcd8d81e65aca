// Allocates each sample's memory once its plan says how large it is.
#include "core/pipeline/workers/sized_backend.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/pipeline/workers/sample_maker.h"

namespace headrace {
namespace {

class SizedMaker final : public SampleMaker {
 public:
  SizedMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut, SizedSlots& slots)
      : SampleMaker(kernels, options, lut), slots_(slots) {}

 private:
  Output output(Batch& batch, int sample, const Plan& plan) override {
    const Size size = plan.last.box.size();
    const OutputStrides& one = options_.strides;
    const OutputStrides strides = strides_of(options_.layout, one.channels, size, one.element_bytes);
    SizedSample& made = (*batch.sized)[static_cast<size_t>(batch.place(sample))];
    Lease memory = slots_.acquire(strides.sample_bytes);
    uint8_t* const to = memory.get();
    made.size = size;
    made.memory.put(std::move(memory));
    return output_at(to, strides, options_, lut_);
  }

  SizedSlots& slots_;
};

}  // namespace

SizedBackend::SizedBackend(SampleOptions options, const Kernels& kernels)
    : options_(std::move(options)), kernels_(kernels) {
  lut_.resize(options_.lut.size());
  std::memcpy(lut_.data(), options_.lut.data(), options_.lut.size());
}

void SizedBackend::prepare(Batch& batch, BatchMemory memory) {
  if (memory.data != nullptr) throw std::logic_error("samples of different sizes are made in memory of their own");
  batch.sized = std::make_shared<std::vector<SizedSample>>(static_cast<size_t>(batch.size()));
}

std::unique_ptr<SampleWorker> SizedBackend::make_worker() {
  return std::make_unique<SizedMaker>(kernels_, options_, lut_.data(), slots_);
}

}  // namespace headrace
