// Walks through the headers of a tar archive: ustar, GNU and PAX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headrace {

/// Bytes that can be read at any offset.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// Returns the number of bytes read: fewer than `length` only at the end. Throws Error(kRead).
  virtual size_t read(uint8_t* to, size_t length, uint64_t offset) const = 0;
};

/// The archive cannot be indexed. what() says why and where.
class ArchiveError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A name for a message: at most 200 bytes of it, without control characters, which would end or forge the message.
std::string quoted(std::string_view name);

/// Whether a block is the header of a member of `length` bytes. Sizes in base 256 are not compared.
bool is_tar_header(std::span<const uint8_t> block, uint64_t length);
/// The name in the header itself; "" if the block is not the header of a regular file.
std::string own_name(std::span<const uint8_t> block);
/// The number of bytes after a header that extends a member's name or attributes; nullopt if the block is not such a
/// header.
std::optional<uint64_t> extension_size(std::span<const uint8_t> block);

/// A regular file in an archive.
struct TarMember {
  std::string_view name;          // valid until the next call
  uint64_t begin = 0;             // offset after the previous member: of headers that extend its name, or of its own
  uint64_t header = 0;            // offset of its own header
  uint64_t offset = 0, size = 0;  // of its bytes, which are inside the archive
  std::span<const uint8_t> head;  // its first bytes: at least 24, or all
};

/// Returns the regular files in order; folders, links and devices are skipped.
class TarWalk {
 public:
  /// `begin`: offset of the first header to read.
  explicit TarWalk(const ByteSource& source, uint64_t begin = 0) : source_(&source), next_(begin) {}

  /// Returns false at the end. Throws ArchiveError for what is damaged, and for members whose bytes are not stored in
  /// one piece (sparse files, parts of another volume).
  bool next(TarMember& member);
  /// After the end: whether the archive has its end marker. One without may have been cut between two members.
  bool has_end() const { return has_end_; }
  /// The offset that the next call reads from.
  uint64_t position() const { return next_; }

  static constexpr size_t kBlock = 512;

 private:
  bool read_header();
  std::string_view header_name();
  uint64_t checked_end(uint64_t size, const char* what) const;
  std::string read_extension_bytes(uint64_t size) const;
  void read_pax(std::string_view records, bool global);
  [[noreturn]] void fail(const std::string& why) const;

  const ByteSource* source_;
  std::array<uint8_t, 2 * kBlock> blocks_{};  // a header and what follows it
  size_t filled_ = 0;
  uint64_t at_ = 0;    // offset of the header in blocks_
  uint64_t next_ = 0;  // offset of the next header
  std::string name_, long_name_, pax_name_;
  uint64_t pax_size_ = 0;
  bool has_long_name_ = false, has_pax_name_ = false, has_pax_size_ = false, has_end_ = false;
};

}  // namespace headrace
