// Fills a batch, with checks, and records its failures.
#include "core/pipeline/batch/batch.h"

#include <stdexcept>

namespace headrace {

void Batch::fill(std::shared_ptr<const BlobTable> from, std::vector<int64_t> its_rows, std::vector<double> its_draws,
                 int draws_each) {
  if (its_draws.size() != its_rows.size() * static_cast<size_t>(draws_each)) {
    throw std::invalid_argument("draws do not fit the batch and the recipe");
  }
  for (const int64_t row : its_rows) {
    if (row < 0 || row >= from->size()) {
      throw std::out_of_range("index " + std::to_string(row) + " is out of range for a dataset of " +
                              std::to_string(from->size()) + " samples");
    }
  }
  failures_.reserve(its_rows.size());  // so that fail() need not allocate
  blobs = std::move(from);
  rows = std::move(its_rows);
  draws = std::move(its_draws);
  sizes.assign(rows.size(), Size{});
  room = size();
  unclaimed.reset(size());
  remaining.store(size());
  ready.store(size() == 0);
}

Plan Batch::plan_of(int number, const Recipe& recipe, const double* its_draws, Size image, size_t from) const {
  if (plans.empty()) return resolve(recipe, its_draws, image, from);
  const GivenPlan& given = plans[static_cast<size_t>(number)];
  if (given.image != image) {
    throw Error(Stage::kPlan, "the plan of this sample is for an image of another size");
  }
  return given.plan;
}

void Batch::fail(int sample, Stage stage, int os_errno, const char* reason) noexcept {
  Failure failure{sample, stage, os_errno, {}};
  try {
    failure.reason = reason;
  } catch (const std::bad_alloc&) {
    failure.os_errno = ENOMEM;
    failure.reason = kNoMemory;
  }
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(failure));
}

}  // namespace headrace
