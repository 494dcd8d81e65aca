// Places the columns of a batch in one slot, and copies the rows of a sample on one thread.
#include "core/pipeline/columns/gather_backend.h"

#include <stdexcept>
#include <utility>

#include "core/io/source/columns.h"

namespace headrace {
namespace {

// Several batches are in flight. At or above this size, the first bytes of a batch have left a core's share of the
// caches before the consumer reads them.
constexpr size_t kLargeBatch = size_t{8} << 20;

class GatherWorker final : public SampleWorker {
 public:
  explicit GatherWorker(const GatherLayout& layout) : layout_(layout) {}

  bool make(std::span<const uint8_t> /*bytes*/, const double* /*draws*/, const std::shared_ptr<Batch>& /*batch*/,
            int /*sample*/, bool /*may_offload*/) override {
    throw std::logic_error("this pipeline gathers rows of columns; it decodes nothing");
  }

  void make_from_pixels(const RawImage& /*image*/, const double* /*draws*/, Batch& /*batch*/, int /*sample*/) override {
    throw std::logic_error("this pipeline gathers rows of columns; it makes no images");
  }

  void gather(const Columns& from, int64_t row, Batch& batch, int sample) override {
    const std::vector<Column>& columns = from.columns();
    if (columns.size() != layout_.columns()) throw std::logic_error("the table has another number of columns");
    const auto samples = static_cast<size_t>(batch.room), place = static_cast<size_t>(batch.place(sample));
    const bool past_caches = layout_.batch_bytes(samples) >= kLargeBatch;
    uint8_t* to = batch.memory;
    for (size_t c = 0; c < columns.size(); ++c) {
      const size_t bytes = layout_.row_bytes(c);
      if (columns[c].row_bytes != bytes) throw std::logic_error("a column of the table has rows of another size");
      columns[c].copy_row(row, to + place * bytes, past_caches);
      to += layout_.column_bytes(c, samples);
    }
  }

 private:
  const GatherLayout& layout_;
};

}  // namespace

size_t GatherLayout::batch_bytes(size_t samples) const {
  size_t bytes = 0;
  for (size_t c = 0; c < columns(); ++c) bytes += column_bytes(c, samples);
  return bytes;
}

GatherBackend::GatherBackend(std::vector<size_t> row_bytes, size_t slots_kept)
    : layout_(std::move(row_bytes)), slots_(slots_kept) {}

void GatherBackend::prepare(Batch& batch, BatchMemory memory) {
  slots_.prepare(batch, memory, layout_.batch_bytes(static_cast<size_t>(batch.size())));
}

std::unique_ptr<SampleWorker> GatherBackend::make_worker() { return std::make_unique<GatherWorker>(layout_); }

}  // namespace headrace
