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

/// The entry points of many images, by the content of their files, so that a changed file has none. One for the
/// process: all decoders share it. Any thread may call any method; none waits.
class EntryPoints {
 public:
  /// Scans of more bytes are not entered: an EntryPoint could not say where.
  static constexpr size_t kMostScanBytes = size_t{1} << 29;

  static EntryPoints& of_process();

  /// Bytes that may be used; 0, the default: nothing is learned. Nothing is removed if it is lowered.
  void set_limit(size_t bytes) { limit_ = bytes; }
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  /// The number that a file's content is known by. Differs between processes.
  static uint64_t key_of(std::span<const uint8_t> file);
  /// Replaces *found by what is known: the beginnings of rows 1, 2, ... of MCUs, perhaps not of all; or by nothing.
  void find(uint64_t key, std::vector<EntryPoint>* found);
  /// Replaces what is known by `learned`, if that is more and the limit allows it.
  void keep(uint64_t key, std::span<const EntryPoint> learned) noexcept;

  size_t images() const { return images_; }
  size_t bytes() const { return bytes_; }

 private:
  struct Part {
    std::mutex lock;
    std::unordered_map<uint64_t, std::vector<EntryPoint>> known;
  };
  static constexpr size_t kParts = 16;

  std::array<Part, kParts> parts_;
  std::atomic<size_t> limit_{0}, bytes_{0}, images_{0};
};

}  // namespace headrace
