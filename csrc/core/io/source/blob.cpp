// The tables of blobs: paths packed into one string, spans of memory, arrays of pixels, and tables made of tables.
#include "core/io/source/blob.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace headrace {
namespace {

/// Paths only; Reader opens the files.
class Paths final : public BlobTable {
 public:
  Paths(std::string paths, std::vector<uint64_t> offsets) : paths_(std::move(paths)), offsets_(std::move(offsets)) {}
  int64_t size() const override { return static_cast<int64_t>(offsets_.size()); }
  Blob at(int64_t row) const override {
    Blob blob;
    blob.path = paths_.data() + offsets_[static_cast<size_t>(row)];
    return blob;
  }

 private:
  const std::string paths_;
  const std::vector<uint64_t> offsets_;
};

class Memory final : public BlobTable {
 public:
  explicit Memory(std::vector<Blob> spans) : spans_(std::move(spans)) {}
  int64_t size() const override { return static_cast<int64_t>(spans_.size()); }
  Blob at(int64_t row) const override { return spans_[static_cast<size_t>(row)]; }

 private:
  const std::vector<Blob> spans_;
};

class Spans final : public BlobTable {
 public:
  explicit Spans(std::vector<std::span<const uint8_t>> spans) : spans_(std::move(spans)) {}
  int64_t size() const override { return static_cast<int64_t>(spans_.size()); }
  Blob at(int64_t row) const override {
    const auto span = spans_[static_cast<size_t>(row)];
    Blob blob;
    blob.data = span.data();
    blob.size = span.size();
    return blob;
  }

 private:
  const std::vector<std::span<const uint8_t>> spans_;
};

class Pixels final : public BlobTable {
 public:
  Pixels(const RawImage& first, ptrdiff_t stride, int64_t count) : first_(first), stride_(stride), count_(count) {}
  int64_t size() const override { return count_; }
  Blob at(int64_t row) const override {
    Blob blob;
    blob.raw = first_;
    blob.raw.data += row * stride_;
    return blob;
  }

 private:
  const RawImage first_;
  const ptrdiff_t stride_;
  const int64_t count_;
};

class Parts final : public BlobTable {
 public:
  explicit Parts(std::vector<std::shared_ptr<const BlobTable>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->size());
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Blob at(int64_t row) const override {
    const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
    return parts_[part]->at(part == 0 ? row : row - ends_[part - 1]);
  }

 private:
  const std::vector<std::shared_ptr<const BlobTable>> parts_;
  std::vector<int64_t> ends_;  // one past the last row of each part
};

class Rows final : public BlobTable {
 public:
  Rows(std::shared_ptr<const BlobTable> table, std::vector<int64_t> rows)
      : table_(std::move(table)), rows_(std::move(rows)) {
    for (const int64_t row : rows_) {
      if (row < 0 || row >= table_->size()) throw std::out_of_range("a row is not in the table");
    }
  }
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  Blob at(int64_t row) const override { return table_->at(rows_[static_cast<size_t>(row)]); }

 private:
  const std::shared_ptr<const BlobTable> table_;
  const std::vector<int64_t> rows_;
};

}  // namespace

std::shared_ptr<const BlobTable> BlobTable::of_files(std::string paths, std::vector<uint64_t> offsets) {
  return std::make_shared<Paths>(std::move(paths), std::move(offsets));
}

std::shared_ptr<const BlobTable> BlobTable::of_memory(std::vector<Blob> spans) {
  return std::make_shared<Memory>(std::move(spans));
}

std::shared_ptr<const BlobTable> BlobTable::of_spans(std::vector<std::span<const uint8_t>> spans) {
  return std::make_shared<Spans>(std::move(spans));
}

std::shared_ptr<const BlobTable> BlobTable::of_pixels(const RawImage& first, ptrdiff_t stride, int64_t count) {
  return std::make_shared<Pixels>(first, stride, count);
}

std::shared_ptr<const BlobTable> BlobTable::of_parts(std::vector<std::shared_ptr<const BlobTable>> parts) {
  return std::make_shared<Parts>(std::move(parts));
}

std::shared_ptr<const BlobTable> BlobTable::of_rows(std::shared_ptr<const BlobTable> table, std::vector<int64_t> rows) {
  return std::make_shared<Rows>(std::move(table), std::move(rows));
}

}  // namespace headrace
