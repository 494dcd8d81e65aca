// Totals of one stage, as Pipeline::stats() returns them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

/// What all threads together did in one stage since the pipeline was made.
struct StageReport {
  std::string stage;
  int64_t items = 0;                 // samples, unless the stage counts something else
  int64_t busy_ns = 0;               // summed over threads
  std::vector<int64_t> durations{};  // timed items in each bucket of Durations; empty: not counted
};

}  // namespace headrace
