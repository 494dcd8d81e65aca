// The members of a tar archive whose bytes arrive in order, starting at any header, without an index and without
// keeping the bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/byte_buffer.h"
#include "core/io/tar/tar_samples.h"
#include "core/io/tar/tar_walk.h"

namespace headrace {

/// A member that belongs to a sample.
struct ArrivedMember {
  std::string key, extension;      // ASCII letters of the extension are in lower case
  uint64_t begin = 0;              // as in TarMember
  uint64_t offset = 0, size = 0;   // of its bytes
  std::span<const uint8_t> bytes;  // of wanted members; valid until the next call
  bool wanted = false;
};

/// The same members, and the same errors, as those of tar_samples(). One thread at a time.
class ArrivingTar {
 public:
  /// `size`: of the whole archive. `begin`: offset of the first byte that arrives, which must begin a header. `wanted`:
  /// extensions of the members whose bytes are kept until they are complete.
  ArrivingTar(uint64_t size, uint64_t begin, std::unordered_set<std::string> wanted);
  ArrivingTar(const ArrivingTar&) = delete;
  ArrivingTar& operator=(const ArrivingTar&) = delete;

  /// Appends the next bytes. Those after the end of the archive are ignored.
  void append(SharedBytes bytes);

  enum class Step : uint8_t { kMember, kMore, kEnd };
  /// kMore: more bytes have to arrive first. Throws ArchiveError.
  Step next(ArrivedMember& member);

  /// Offset after the members that next() has returned.
  uint64_t position() const { return walk_.position(); }
  /// After kEnd: see TarWalk::has_end.
  bool has_end() const { return walk_.has_end(); }
  /// The number of members so far that are macOS's metadata.
  uint64_t passed() const { return passed_; }

 private:
  /// The bytes that have arrived and are still needed.
  struct Window final : ByteSource {
    struct Piece {
      uint64_t begin;
      SharedBytes bytes;
      uint64_t end() const { return begin + bytes->size(); }
    };
    uint64_t whole = 0;    // total bytes of the archive
    uint64_t arrived = 0;  // offset after the last byte
    std::deque<Piece> pieces;
    uint64_t size() const override { return whole; }
    size_t read(uint8_t* to, size_t length, uint64_t offset) const override;
    /// Bytes that have arrived: in place, or as a copy in `joined` if they are in several pieces.
    std::span<const uint8_t> at(uint64_t offset, size_t length, std::vector<uint8_t>& joined) const;
  };
  Window window_;
  TarWalk walk_;
  const std::unordered_set<std::string> wanted_;
  std::string key_;  // of the current sample
  uint64_t passed_ = 0;
  std::vector<uint8_t> joined_;
  std::unordered_set<std::string> extensions_;
};

}  // namespace headrace
