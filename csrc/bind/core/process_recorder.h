// The recorder of all pipelines of this process.
#pragma once

#include <memory>

#include "core/trace/recorder.h"

namespace headrace {

/// Another one in a forked child: its threads are not the parent's, and nobody records there yet. Under the GIL.
std::shared_ptr<Recorder> process_recorder();

}  // namespace headrace
