// Makes samples in this machine's memory: parses the header, plans, decodes and fuses, in one streaming pass.
#pragma once

#include "core/batch/backend.h"
#include "core/batch/sample_worker.h"
#include "core/fuse/fuse.h"
#include "core/jpeg/jpeg_decoder.h"
#include "core/jpeg/jpeg_header.h"
#include "core/rows/raw_rows.h"

namespace headrace {

/// The header of a file that the native decoder supports, within the limits of `options`. Throws NeedsPillow for every
/// other file.
JpegHeader plain_header(std::span<const uint8_t> bytes, const SampleOptions& options);

/// The worker of CpuBackend.
class SampleMaker final : public SampleWorker {
 public:
  /// `kernels`, `options` and `lut` (the options' table, aligned as kernels.h requires) must outlive this.
  SampleMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut)
      : options_(options), lut_(lut), fuser_(kernels) {}

  /// As in SampleWorker. Returns true: there is no device that could finish the sample. Throws NeedsPillow as
  /// plain_header and JpegDecoder do; the latter when part of the sample may be written already.
  bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch, int sample,
            bool may_offload) override;
  void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) override;

 private:
  Output output(const Batch& batch, int sample) const;

  const SampleOptions& options_;
  const uint8_t* lut_;
  JpegDecoder decoder_;
  RawRows raw_rows_;
  Fuser fuser_;
  int since_timed_ = -1;  // samples since the last one that was timed; one of kTimedShare is
};

}  // namespace headrace
