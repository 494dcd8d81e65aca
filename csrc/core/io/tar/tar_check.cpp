// Reads a member's headers again, as the walk that made the index reads them.
#include "core/io/tar/tar_check.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/io/remote/checksum.h"

namespace headrace {
namespace {

constexpr uint64_t kBlock = TarWalk::kBlock;
constexpr size_t kMostBlocks = 64;  // of headers that extend a name, before the member's own: 32 KiB
constexpr size_t kOwnName = 100;    // bytes of a name that every format holds in the header itself

/// A file of which a part has been read.
class Held final : public ByteSource {
 public:
  Held(const OpenFile& file, uint64_t size, std::span<const uint8_t> bytes, uint64_t begin)
      : file_(file), size_(size), bytes_(bytes), begin_(begin) {}
  uint64_t size() const override { return size_; }
  size_t read(uint8_t* to, size_t length, uint64_t offset) const override {
    if (offset >= begin_ && length <= bytes_.size() && offset - begin_ <= bytes_.size() - length) {
      std::memcpy(to, bytes_.data() + (offset - begin_), length);
      return length;
    }
    return static_cast<size_t>(read_at(file_, to, length, offset));
  }

 private:
  const OpenFile& file_;
  const uint64_t size_;
  const std::span<const uint8_t> bytes_;
  const uint64_t begin_;
};

/// Whether the first member after `begin` has this offset and size, and is one that `fits` accepts.
template <class Fits>
bool is_next(const ByteSource& source, uint64_t begin, uint64_t offset, uint64_t size, const Fits& fits) {
  try {
    TarWalk walk(source, begin);
    TarMember member;
    return walk.next(member) && member.offset == offset && member.size == size && fits(member, checked_name(member));
  } catch (const ArchiveError&) {
    return false;
  }
}

/// The possible beginnings of a run of headers that extend a name and end at `end`: all offsets with a header whose
/// bytes end there or at another of these offsets. Nearest first.
std::vector<uint64_t> beginnings(const ByteSource& source, uint64_t end) {
  const auto blocks = static_cast<size_t>(std::min<uint64_t>(end / kBlock, kMostBlocks));
  if (blocks < 2) return {};
  std::vector<uint8_t> held(blocks * kBlock);
  const uint64_t first = end - held.size();
  if (source.read(held.data(), held.size(), first) != held.size()) return {};
  std::vector<uint64_t> found{end};
  for (size_t back = 2; back <= blocks; ++back) {
    const std::span<const uint8_t> block(held.data() + (blocks - back) * kBlock, kBlock);
    const uint64_t at = end - back * kBlock;
    const auto size = extension_size(block);
    if (!size || *size > held.size()) continue;
    const uint64_t next = at + kBlock + (*size + kBlock - 1) / kBlock * kBlock;
    if (std::find(found.begin(), found.end(), next) != found.end()) found.push_back(at);
  }
  found.erase(found.begin());
  return found;
}

/// Whether a member that fits is at the offset: by its own header, or with headers that extend its name.
template <class Fits>
bool is_at(const ByteSource& source, uint64_t offset, uint64_t size, const Fits& fits) {
  if (offset < kBlock || offset > source.size() || size > source.size() - offset) return false;
  const uint64_t own = offset - kBlock;
  if (is_next(source, own, offset, size, fits)) return true;
  const std::vector<uint64_t> others = beginnings(source, own);
  return std::any_of(others.begin(), others.end(),
                     [&](uint64_t begin) { return is_next(source, begin, offset, size, fits); });
}

}  // namespace

bool is_member_at(const ByteSource& source, const IndexedMember& indexed, int64_t* number) {
  return is_at(source, indexed.offset, indexed.size, [&](const TarMember& member, const TarName& name) {
    if (name.key != indexed.key || lower_case(name.extension) != indexed.extension) return false;
    if (number != nullptr) *number = number_in(member);
    return true;
  });
}

bool is_marked_at(const ByteSource& source, uint64_t offset, uint64_t size, uint64_t mark) {
  return is_at(source, offset, size, [&](const TarMember&, const TarName& name) {
    return name_mark(name.key, lower_case(name.extension)) == mark;
  });
}

uint64_t name_mark(std::string_view key, std::string_view extension) {
  const std::string name = std::string(key) + "." + std::string(extension);
  const auto plain = [](char letter) { return letter >= ' ' && letter < 0x7F; };
  if (name.size() > kOwnName || !std::all_of(name.begin(), name.end(), plain)) return 0;
  return checksum({reinterpret_cast<const uint8_t*>(name.data()), name.size()}) | 1;
}

uint64_t header_mark(std::span<const uint8_t> block) {
  const std::string whole = own_name(block);
  const TarName name = split_tar_name(whole);
  return name.key.empty() ? 0 : name_mark(name.key, lower_case(name.extension));
}

TarCheck::TarCheck(std::span<const uint8_t> keys, std::span<const uint64_t> key_offsets, std::vector<TarField> fields)
    : keys_(keys),
      key_offsets_(key_offsets),
      fields_(std::move(fields)),
      checked_(std::make_unique<std::atomic<uint64_t>[]>(key_offsets.size() / 64 + 1)) {
  const size_t count = key_offsets.size();
  if (fields_.empty()) throw std::out_of_range("there is nothing to check");
  if (count > 0 && (keys.empty() || keys.back() != 0)) throw std::out_of_range("the last key does not end");
  for (const uint64_t offset : key_offsets) {
    if (offset >= keys.size()) throw std::out_of_range("a key is not among the keys");
  }
  for (const TarField& field : fields_) {
    if (field.choice.size() != count || field.offsets.size() != count || field.lengths.size() != count ||
        (!field.numbers.empty() && field.numbers.size() != count)) {
      throw std::out_of_range("the arrays of the members differ in length");
    }
    for (const uint8_t choice : field.choice) {
      if (choice >= field.extensions.size()) throw std::out_of_range("an extension is not among the extensions");
    }
  }
}

IndexedMember TarCheck::indexed_member(const TarField& field, size_t row) const {
  const auto* key = reinterpret_cast<const char*>(keys_.data()) + key_offsets_[row];  // the last byte of keys_ is zero
  return {field.offsets[row], field.lengths[row], key, field.extensions[field.choice[row]]};
}

std::optional<RowCheck::Part> TarCheck::wanted(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  if (checked_[at / 64].load(std::memory_order_relaxed) >> at % 64 & 1) return {};
  const uint64_t offset = fields_[0].offsets[at], end = offset + fields_[0].lengths[at];
  Part part{offset - std::min(offset, kBlock), end};
  for (const TarField& field : std::span(fields_).subspan(1)) {
    // The header of the member, and the bytes that a number may occupy.
    const uint64_t begin = field.offsets[at] - std::min(field.offsets[at], kBlock), after = begin + 2 * kBlock;
    if (begin < offset && offset - begin <= kNear) part.begin = std::min(part.begin, begin);
    if (after > end && after - end <= kNear) part.end = std::max(part.end, after);
  }
  return part;
}

void TarCheck::check(int64_t row, const OpenFile& file, std::span<const uint8_t> bytes, uint64_t begin) const {
  const auto at = static_cast<size_t>(row);
  const Held source(file, state_of(file).value_or(FileState{}).stamp.size, bytes, begin);
  for (const TarField& field : fields_) {
    const IndexedMember said = indexed_member(field, at);
    int64_t number = TarSamples::kNoNumber;
    const bool there = is_member_at(source, said, &number);
    if (there && (field.numbers.empty() || number == field.numbers[at])) continue;
    const std::string name = quoted(std::string(said.key) + "." + std::string(said.extension));
    const std::string what = there ? name + " does not hold the number " + std::to_string(field.numbers[at])
                                   : name + " is not at offset " + std::to_string(said.offset);
    throw Error(Stage::kRead, "the index does not fit the shard: " + what + "; remove the index, and it is made again");
  }
  checked_[at / 64].fetch_or(uint64_t{1} << at % 64, std::memory_order_relaxed);
}

uint64_t TarCheck::row_hash(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  std::string said;
  for (const TarField& field : fields_) {
    const IndexedMember one = indexed_member(field, at);
    const int64_t number = field.numbers.empty() ? TarSamples::kNoNumber : field.numbers[at];
    said.append(one.key).append(1, '\0').append(one.extension).append(1, '\0');
    for (const uint64_t value : {static_cast<uint64_t>(number), field.numbers.empty() ? 0 : one.offset}) {
      said.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return checksum({reinterpret_cast<const uint8_t*>(said.data()), said.size()}) | 1;
}

}  // namespace headrace
