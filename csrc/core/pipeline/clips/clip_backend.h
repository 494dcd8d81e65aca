// The backend for clips of audio: reads the needed part of a plain WAV file into the batch; other files go to Python.
#pragma once

#include <memory>

#include "core/audio/wav_samples.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch_slots.h"

namespace headrace {

/// A batch is (samples, channels, clip.samples) float32. Batch::sizes has, as the width, how many samples of a clip
/// come from its file. A sample has one draw, the place of the clip.
class ClipBackend final : public Backend {
 public:
  /// `slots_kept`: most free slots that stay mapped.
  ClipBackend(Clip clip, size_t slots_kept) : clip_(clip), slots_(slots_kept) {}

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }

  static size_t sample_bytes(const Clip& clip) {
    return static_cast<size_t>(clip.channels) * static_cast<size_t>(clip.samples) * sizeof(float);
  }

 private:
  const Clip clip_;
  BatchSlots slots_;
};

}  // namespace headrace
