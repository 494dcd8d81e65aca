// A batch on its way to a device: what its samples staged, and the events that order its writing with the user's
// stream.
#pragma once

#include <memory>
#include <vector>

#include "core/batch/batch.h"
#include "gpu/batches/staging.h"
#include "gpu/device/owned.h"

namespace headrace {

struct DeviceBatch final : Batch {
  StagingRing::Lease area;
  std::vector<SampleJob> jobs;            // one a sample, from the worker that made it; `skip` until then
  std::shared_ptr<OwnedEvent> allocated;  // the user's stream may be done with the memory's last use
  std::shared_ptr<OwnedEvent> written;    // the kernel has written the batch; shared with its repairs
};

}  // namespace headrace
