// Allocates each sample's memory once its plan says how large it is.
#include "core/making/sized_backend.h"

#include <cstring>
#include <stdexcept>

#include "core/making/sample_maker.h"

namespace headrace {
namespace {

class SizedMaker final : public SampleMaker {
 public:
  SizedMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut, SizedSlots& slots)
      : SampleMaker(kernels, options, lut), layout_(options.layout), slots_(slots) {}

 private:
  Place place(Batch& batch, int sample, Size size, const OutputStrides& one) const override {
    const OutputStrides strides = strides_of(layout_, one.channels, size, one.element_bytes);
    SizedSample& made = (*batch.sized)[static_cast<size_t>(batch.place(sample))];
    made = {slots_.acquire(strides.sample_bytes), size};
    return {made.memory.get(), strides};
  }

  const Layout layout_;
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
