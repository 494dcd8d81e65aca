// Where the rows of MCUs begin in the scans of JPEGs without restart markers: learned by one decode, used by later
// ones.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace headrace {

/// The state of a decoder between two rows of MCUs.
struct EntryPoint {
  uint32_t bit = 0;  // of the scan as in the file: 8 * byte + bit of that byte
  std::array<int16_t, 3> dc{};
  bool operator==(const EntryPoint&) const = default;
};

/// The key and the entry points of an image.
struct EntryList {
  uint64_t key = 0;
  std::vector<EntryPoint> points;
};

/// How many decodes of scans that may be entered used entry points.
struct EntryCounts {
  size_t images = 0, bytes = 0;     // known now
  size_t decodes = 0, entered = 0;  // so far: all, and those of images that were known
};

/// The entry points of many images, by the content of their files, so that a changed file has none. All decoders that
/// receive it share it. Any thread may call any method; none waits.
class EntryPoints {
 public:
  /// Scans of more bytes are not entered: EntryPoint::bit cannot address them.
  static constexpr size_t kMostScanBytes = size_t{1} << 29;

  /// What keys depend on, drawn at random, so that an attacker cannot make two files with one key.
  using Secrets = std::array<uint64_t, 5>;

  /// `limit`: bytes that may be used. `secrets`: of the table whose content is added to this one.
  explicit EntryPoints(size_t limit) : EntryPoints(limit, drawn()) {}
  EntryPoints(size_t limit, const Secrets& secrets) : limit_(limit), secrets_(secrets) {}

  size_t limit() const { return limit_; }
  /// Whether the table is nearly full, so that learning more is useless.
  bool is_full() const { return bytes_.load(std::memory_order_relaxed) >= limit_ - limit_ / 16; }
  const Secrets& secrets() const { return secrets_; }
  /// The key of a file's content. Two tables have different keys for the same content.
  uint64_t key_of(std::span<const uint8_t> file) const;
  /// Replaces *found by the known beginnings of rows 1, 2, ... of MCUs, perhaps not of all rows; empty: none are known.
  void find(uint64_t key, std::vector<EntryPoint>* found);
  /// Replaces the known entry points by `learned`, if those are more and the limit allows it.
  void keep(uint64_t key, std::span<const EntryPoint> learned) noexcept;

  /// Everything that is known now; entries that another thread is using may be left out. Throws std::bad_alloc.
  std::vector<EntryList> all() const;
  EntryCounts counts() const { return {images_, bytes_, decodes_, entered_}; }

 private:
  struct Part {
    mutable std::mutex lock;
    std::unordered_map<uint64_t, std::vector<EntryPoint>> known;
  };
  static constexpr size_t kParts = 16;

  static Secrets drawn();

  const size_t limit_;
  const Secrets secrets_;
  std::array<Part, kParts> parts_;
  std::atomic<size_t> bytes_{0}, images_{0}, decodes_{0}, entered_{0};
};

}  // namespace headrace
