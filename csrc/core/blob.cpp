// The table of blobs: paths packed into one string, or spans of memory.
#include "blob.h"

#include <utility>

namespace headrace {

std::shared_ptr<const BlobTable> BlobTable::of_files(std::string paths, std::vector<uint64_t> offsets) {
  auto table = std::make_shared<BlobTable>();
  table->paths_ = std::move(paths);
  table->offsets_ = std::move(offsets);
  return table;
}

std::shared_ptr<const BlobTable> BlobTable::of_memory(std::vector<Blob> spans) {
  auto table = std::make_shared<BlobTable>();
  table->memory_ = std::move(spans);
  return table;
}

Blob BlobTable::at(int64_t row) const {
  const auto i = static_cast<size_t>(row);
  if (!memory_.empty()) return memory_[i];
  Blob blob;
  blob.path = paths_.data() + offsets_[i];
  return blob;
}

}  // namespace headrace
