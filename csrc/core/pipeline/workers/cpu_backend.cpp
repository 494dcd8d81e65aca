// Leases a slot for each batch and makes workers that write to it.
#include "core/pipeline/workers/cpu_backend.h"

#include <cstring>

#include "core/pipeline/workers/sample_maker.h"
#include "core/pipeline/workers/texture_maker.h"

namespace headrace {

CpuBackend::CpuBackend(SampleOptions options, const Kernels& kernels, size_t slots_kept)
    : options_(std::move(options)), kernels_(kernels), slots_(slots_kept) {
  lut_.resize(options_.lut.size());
  std::memcpy(lut_.data(), options_.lut.data(), options_.lut.size());
}

void CpuBackend::prepare(Batch& batch, BatchMemory memory) {
  slots_.prepare(batch, memory, static_cast<size_t>(batch.size()) * options_.strides.sample_bytes);
}

std::unique_ptr<SampleWorker> CpuBackend::make_worker() {
  if (options_.texture != nullptr) return std::make_unique<TextureMaker>(kernels_, options_, lut_.data());
  return std::make_unique<SampleMaker>(kernels_, options_, lut_.data());
}

}  // namespace headrace
