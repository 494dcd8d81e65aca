// A batch on its way to a device: its staged bytes and jobs, and the events that order the kernel with the caller's
// stream.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/jpeg/sequential/jpeg_header.h"
#include "core/pipeline/batch/batch.h"
#include "gpu/batches/staging.h"
#include "gpu/device/owned.h"

namespace headrace {

/// The batch of DeviceBackend.
struct DeviceBatch final : Batch {
  StagingRing::Lease area;
  std::vector<SampleJob> jobs;                     // one per sample, set by its worker; `skip` until then
  std::vector<std::optional<JpegHeader>> headers;  // of samples given to the lane; without one, the list is empty
  std::shared_ptr<OwnedEvent> allocated;           // the caller's stream is done with earlier uses of the memory
  std::shared_ptr<OwnedEvent> written;             // the kernel has written the batch; its repairs share the event
};

}  // namespace headrace
