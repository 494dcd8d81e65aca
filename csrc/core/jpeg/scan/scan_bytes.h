// The bytes of a scan, segment by segment: without stuffing, cut at the restart markers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

class ScanBytes {
 public:
  /// Call before the first segment of `scan`, which must outlive the calls of enter(). `padding`: bytes after a segment
  /// that must be readable; their values are unspecified. Throws std::bad_alloc.
  void begin(std::span<const uint8_t> scan, size_t padding);
  /// Makes segment `number` the current one. It must come after the current one; those in between are only searched for
  /// their markers. False: there is no such segment.
  bool enter(int number);
  /// Makes a part of the scan the current one: bytes [from, to) of it, cut at the scan's end.
  void enter_at(size_t from, size_t to);
  /// Replaces each `at[i]`, an offset in the current segment, by its offset in the scan. `at`: ascending, inside the
  /// segment.
  void to_scan(std::span<size_t> at) const;

  const uint8_t* data() const { return bytes_.data(); }  // of the current segment
  size_t size() const { return size_; }

 private:
  bool pass();
  void copy(const uint8_t* end);

  std::vector<uint8_t> bytes_;
  size_t size_ = 0;
  const uint8_t *begin_ = nullptr, *end_ = nullptr;     // of the scan
  const uint8_t *current_ = nullptr, *next_ = nullptr;  // in the scan: where the current segment begins; `number_`
  int number_ = 0;
  bool more_ = false;  // segment `number_` exists
};

}  // namespace headrace
