// Keeps a sample's image in scratch memory, and writes its channels to the batch.
#include "core/pipeline/workers/texture_maker.h"

#include "core/fuse/sinks/rgbx_output.h"

namespace headrace {

TextureMaker::TextureMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut)
    : SampleMaker(kernels, options, lut), kernels_(kernels), scratch_(options.texture->view().size) {}

Output TextureMaker::output(Batch& /*batch*/, int /*sample*/, const Plan& /*plan*/) {
  return rgbx_output(scratch_.pixels(), options_.texture->view().size);
}

void TextureMaker::finish(Batch& batch, int sample) {
  const OutputStrides& strides = options_.strides;
  uint8_t* base = batch.memory + static_cast<size_t>(batch.place(sample)) * strides.sample_bytes;
  kernels_.make_texture(options_.texture->view(), scratch_.view(),
                        {base, strides.channel_stride, strides.row_stride, strides.pixel_stride});
}

}  // namespace headrace
