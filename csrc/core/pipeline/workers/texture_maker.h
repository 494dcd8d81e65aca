// Makes samples whose elements are texture channels: the plan ends in an image, from which the channels are made.
#pragma once

#include "core/kernels/textures/texture_scratch.h"
#include "core/pipeline/workers/sample_maker.h"

namespace headrace {

/// The worker of CpuBackend where the options have a texture.
class TextureMaker final : public SampleMaker {
 public:
  /// As SampleMaker.
  TextureMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut);

 private:
  Output output(Batch& batch, int sample, const Plan& plan) override;
  void finish(Batch& batch, int sample) override;

  const Kernels& kernels_;
  TextureScratch scratch_;
};

}  // namespace headrace
