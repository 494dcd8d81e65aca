// Where the encoded bytes of each sample of a dataset lie: one compact table instead of a million Python objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headrace {

/// A sample's encoded bytes: a file (`path`), or memory (`data`).
struct Blob {
  const char* path = nullptr;     // zero-terminated; nullptr: memory
  const uint8_t* data = nullptr;  // memory
  uint64_t size = 0;              // of memory
};

/// Immutable, so any thread may read it. Rows are numbered from 0.
class BlobTable {
 public:
  /// `paths`: all paths, each zero-terminated, behind one another; path i begins at offsets[i].
  static std::shared_ptr<const BlobTable> of_files(std::string paths, std::vector<uint64_t> offsets);
  /// Spans of memory, which must outlive the table.
  static std::shared_ptr<const BlobTable> of_memory(std::vector<Blob> spans);

  int64_t size() const { return static_cast<int64_t>(memory_.empty() ? offsets_.size() : memory_.size()); }
  Blob at(int64_t row) const;

 private:
  std::string paths_;
  std::vector<uint64_t> offsets_;
  std::vector<Blob> memory_;
};

}  // namespace headrace
