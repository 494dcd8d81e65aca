// Compares an index of a tar archive with the archive, member by member, when their bytes are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source/file_ranges.h"
#include "core/io/tar/tar_samples.h"
#include "core/io/tar/tar_walk.h"

namespace headrace {

/// A member as an index describes it.
struct IndexedMember {
  uint64_t offset = 0, size = 0;    // of its bytes
  std::string_view key, extension;  // ASCII letters of the extension in lower case
};

/// Whether the member is there: its headers, which contain its name and size, end where its bytes begin. `number`, if
/// not null: the integer that its bytes spell, or TarSamples::kNoNumber. Throws Error(kRead) if the source cannot be
/// read.
bool is_member_at(const ByteSource& source, const IndexedMember& indexed, int64_t* number = nullptr);

/// The same for a member that is known by its name_mark().
bool is_marked_at(const ByteSource& source, uint64_t offset, uint64_t size, uint64_t mark);

/// Hash of a member's name; 0 if its own header may not hold all of the name.
uint64_t name_mark(std::string_view key, std::string_view extension);
/// The same from a member's own header; 0 if the block is not a header that holds a name.
uint64_t header_mark(std::span<const uint8_t> block);

/// One member of each sample.
struct TarField {
  std::vector<std::string> extensions;
  std::span<const uint8_t> choice;  // number of each sample's extension
  std::span<const uint64_t> offsets, lengths;
  std::span<const int64_t> numbers;  // that the bytes spell; empty: not compared
};

/// Rows are samples: the table gives the bytes of their first field; the other fields are checked when that is read.
class TarCheck final : public RowCheck {
 public:
  /// `keys`, `key_offsets`: zero-terminated, as in TarSamples. The spans' memory must outlive this. Throws
  /// std::out_of_range if they do not fit.
  TarCheck(std::span<const uint8_t> keys, std::span<const uint64_t> key_offsets, std::vector<TarField> fields);

  std::optional<Part> wanted(int64_t row) const override;
  void check(int64_t row, const OpenFile& file, std::span<const uint8_t> bytes, uint64_t begin) const override;
  uint64_t row_hash(int64_t row) const override;
  int64_t size() const { return static_cast<int64_t>(key_offsets_.size()); }

  /// Members at most this number of bytes from the first one are read with it.
  static constexpr uint64_t kNear = 4096;

 private:
  IndexedMember indexed_member(const TarField& field, size_t row) const;

  const std::span<const uint8_t> keys_;
  const std::span<const uint64_t> key_offsets_;
  const std::vector<TarField> fields_;
  const std::unique_ptr<std::atomic<uint64_t>[]> checked_;  // one bit per row
};

}  // namespace headrace
