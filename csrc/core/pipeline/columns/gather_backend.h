// The backend for rows of arrays: copies the rows of several columns into one slot per batch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch_slots.h"

namespace headrace {

/// The memory of a batch of n samples: for each column its n rows, one after another. Each column begins at a multiple
/// of `kColumnAlignment`.
class GatherLayout {
 public:
  static constexpr size_t kColumnAlignment = 64;  // a cache line, and the largest alignment that a dtype needs

  /// `row_bytes`: of each column.
  explicit GatherLayout(std::vector<size_t> row_bytes) : row_bytes_(std::move(row_bytes)) {}

  size_t columns() const { return row_bytes_.size(); }
  size_t row_bytes(size_t column) const { return row_bytes_[column]; }
  /// Distance from the beginning of a column to that of the next one, in a batch of `samples`.
  size_t column_bytes(size_t column, size_t samples) const {
    return (row_bytes_[column] * samples + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
  }
  /// Size of a batch.
  size_t batch_bytes(size_t samples) const;

 private:
  const std::vector<size_t> row_bytes_;
};

/// Workers copy rows of tables whose columns have the layout's sizes; with any other table each sample fails.
class GatherBackend final : public Backend {
 public:
  /// `slots_kept`: most free slots that stay mapped.
  GatherBackend(std::vector<size_t> row_bytes, size_t slots_kept);

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }
  const GatherLayout& layout() const { return layout_; }

 private:
  const GatherLayout layout_;
  BatchSlots slots_;
};

}  // namespace headrace
