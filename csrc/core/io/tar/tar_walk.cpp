// Parses tar headers strictly: what two parsers might understand differently is refused.
#include "core/io/tar/tar_walk.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace headrace {
namespace {

constexpr uint64_t kMostExtension = uint64_t{1} << 20;  // bytes of a long name, or of PAX records

// Fields of a header: offset and length.
struct Field {
  size_t at, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view text(const uint8_t* block, Field field) {
  const std::string_view all(reinterpret_cast<const char*>(block) + field.at, field.length);
  return all.substr(0, all.find('\0'));
}

/// A number in octal digits between blanks, or in base 256. Empty if it is neither, or does not fit.
std::optional<uint64_t> number(const uint8_t* block, Field field) {
  const uint8_t* bytes = block + field.at;
  if (bytes[0] & 0x80) {
    uint64_t value = bytes[0] & 0x7F;
    for (size_t i = 1; i < field.length; ++i) {
      if (value >> 54) return {};
      value = value << 8 | bytes[i];
    }
    return value;
  }
  std::string_view digits = text(block, field);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return {};
    value = value << 3 | static_cast<uint64_t>(digit - '0');
  }
  return value;
}

bool checksum_fits(const uint8_t* block) {
  const auto stored = number(block, kChecksum);
  if (!stored) return false;
  uint64_t plain = 8 * ' ';
  int64_t as_signed = 8 * ' ';  // old programs added signed bytes
  for (size_t i = 0; i < TarWalk::kBlock; ++i) {
    if (i >= kChecksum.at && i < kChecksum.at + kChecksum.length) continue;
    plain += block[i];
    as_signed += static_cast<int8_t>(block[i]);
  }
  return *stored == plain || static_cast<int64_t>(*stored) == as_signed;
}

bool lengthens(uint8_t type) { return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g'; }

std::string name_in(const uint8_t* block) {
  const std::string_view name = text(block, kName), prefix = text(block, kPrefix);
  // GNU's format has other fields at the offset of the prefix.
  const bool posix = std::memcmp(block + kMagic.at, "ustar\0", 6) == 0;
  return posix && !prefix.empty() ? std::string(prefix) + "/" + std::string(name) : std::string(name);
}

const char* compression(std::span<const uint8_t> bytes) {
  const auto begins = [&](std::string_view magic) {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\x1F\x8B")) return "gzip";
  if (begins("BZh")) return "bzip2";
  if (begins("\xFD"
             "7zXZ"))
    return "xz";
  if (begins("\x28\xB5\x2F\xFD")) return "zstd";
  return nullptr;
}

}  // namespace

std::string quoted(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string made = "'";
  for (const char letter : name.substr(0, 200)) {
    const auto byte = static_cast<uint8_t>(letter);
    if (byte >= ' ' && byte != 0x7F) {
      made += letter;
    } else {
      made += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return made + (name.size() > 200 ? "...'" : "'");
}

bool is_tar_header(std::span<const uint8_t> block, uint64_t length) {
  if (block.size() != TarWalk::kBlock || !checksum_fits(block.data())) return false;
  return (block[kSize.at] & 0x80) != 0 || number(block.data(), kSize) == length;
}

std::string own_name(std::span<const uint8_t> block) {
  if (block.size() != TarWalk::kBlock || !checksum_fits(block.data())) return {};
  const uint8_t type = block[kType];
  return type == '0' || type == '7' || type == '\0' ? name_in(block.data()) : std::string();
}

std::optional<uint64_t> extension_size(std::span<const uint8_t> block) {
  if (block.size() != TarWalk::kBlock || !lengthens(block[kType]) || !checksum_fits(block.data())) return {};
  return number(block.data(), kSize);
}

void TarWalk::fail(const std::string& why) const { throw ArchiveError("at byte " + std::to_string(at_) + ": " + why); }

bool TarWalk::read_header() {
  at_ = next_;
  if (at_ == source_->size() && at_ > 0) return false;
  filled_ = source_->read(blocks_.data(), blocks_.size(), at_);
  const std::span<const uint8_t> bytes(blocks_.data(), filled_);
  if (at_ == 0) {
    if (const char* kind = compression(bytes)) {
      fail("it is compressed (" + std::string(kind) +
           "), so its samples are no ranges of bytes: decompress it; images gain nothing from compression");
    }
    if (filled_ == 0) fail("it is empty");
  }
  if (filled_ < kBlock) fail("it ends inside a header: it was truncated; copy or write it again");
  if (std::all_of(blocks_.begin(), blocks_.begin() + kBlock, [](uint8_t byte) { return byte == 0; })) {
    has_end_ = true;
    return false;
  }
  if (!checksum_fits(blocks_.data())) {
    fail(at_ == 0 ? "this is no tar archive (the checksum of the first header is wrong)"
                  : "the checksum of a header is wrong: it is damaged; copy or write it again");
  }
  return true;
}

/// The end of the `size` bytes after the header, with their padding.
uint64_t TarWalk::checked_end(uint64_t size, const char* what) const {
  const uint64_t begin = at_ + kBlock, left = source_->size() - begin;
  const uint64_t padded = size > left ? size : (size + kBlock - 1) / kBlock * kBlock;
  if (padded > left) {
    fail(std::string(what) + " has " + std::to_string(size) + " bytes, but only " + std::to_string(left) +
         " bytes follow: it was truncated; copy or write it again");
  }
  return begin + padded;
}

std::string TarWalk::read_extension_bytes(uint64_t size) const {
  if (size > kMostExtension) fail("a name or its attributes have " + std::to_string(size) + " bytes");
  std::string data(size, '\0');
  if (source_->read(reinterpret_cast<uint8_t*>(data.data()), size, at_ + kBlock) != size) fail("it became shorter");
  return data;
}

void TarWalk::read_pax(std::string_view records, bool global) {
  while (!records.empty() && records.front() != '\0') {
    size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3 || records[digits] != ' ' ||
        records[length - 1] != '\n') {
      fail("a PAX record is damaged");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) fail("a PAX record is damaged");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) fail("a sparse file is not stored in one piece; write the archive without -S");
    if (key != "path" && key != "size") continue;
    if (global) fail("a PAX header gives all members one " + std::string(key) + "; write the archive again");
    if (key == "path") {
      pax_name_ = value;
      has_pax_name_ = !value.empty();
      continue;
    }
    const auto [last, bad] = std::from_chars(value.data(), value.data() + value.size(), pax_size_);
    if (bad != std::errc() || last != value.data() + value.size()) fail("the size in a PAX header is no number");
    has_pax_size_ = true;
  }
}

std::string_view TarWalk::header_name() {
  if (has_pax_name_) return pax_name_;
  if (has_long_name_) return long_name_;
  return name_ = name_in(blocks_.data());
}

bool TarWalk::next(TarMember& member) {
  has_long_name_ = has_pax_name_ = has_pax_size_ = false;
  const uint64_t begin = next_;
  while (read_header()) {
    const char type = static_cast<char>(blocks_[kType]);
    const auto stored = number(blocks_.data(), kSize);
    if (!stored) fail("the size in a header is no number");
    if (lengthens(blocks_[kType])) {
      next_ = checked_end(*stored, "a name or its attributes");
      const std::string data = read_extension_bytes(*stored);
      if (type == 'L') {
        long_name_ = data.substr(0, data.find('\0'));
        has_long_name_ = true;
      } else if (type != 'K') {
        read_pax(data, type == 'g');
      }
      continue;
    }
    const std::string_view name = header_name();
    const uint64_t size = has_pax_size_ ? pax_size_ : *stored;
    if (type == 'S') fail("the sparse file " + quoted(name) + " is not stored in one piece; write it without -S");
    if (type == 'M') fail(quoted(name) + " continues a file of another volume; write the archive in one piece");
    const bool regular = type == '0' || type == '7' || (type == '\0' && !name.ends_with('/'));
    const bool bare = type == '\0' || (type >= '1' && type <= '6');  // links, devices, folders: the size means nothing
    next_ = regular || !bare ? checked_end(size, quoted(name).c_str()) : at_ + kBlock;
    if (regular) {
      if (name.find('\0') != std::string_view::npos) fail("the name " + quoted(name) + " has a zero byte");
      const size_t head = static_cast<size_t>(std::min<uint64_t>(size, filled_ - kBlock));
      member = {name, begin, at_, at_ + kBlock, size, {blocks_.data() + kBlock, head}};
      return true;
    }
    has_long_name_ = has_pax_name_ = has_pax_size_ = false;
  }
  if (has_long_name_ || has_pax_name_ || has_pax_size_) fail("a long name is followed by no file: it was truncated");
  return false;
}

}  // namespace headrace
