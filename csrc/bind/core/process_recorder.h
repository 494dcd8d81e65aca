// The recorder that all pipelines of this process share.
#pragma once

#include <memory>

#include "core/base/trace/recorder.h"

namespace headrace {

/// A forked child has a new one, which is not recording. Callable from any thread.
std::shared_ptr<Recorder> process_recorder();

}  // namespace headrace
