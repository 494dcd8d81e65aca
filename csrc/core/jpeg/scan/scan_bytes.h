// The bytes of a scan, segment by segment: without stuffing, cut at the restart markers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

class ScanBytes {
 public:
  /// Before the first segment of `scan`, which must outlive the calls of enter(). `padding`: bytes behind a segment
  /// that are readable; their values are any. Throws std::bad_alloc.
  void begin(std::span<const uint8_t> scan, size_t padding);
  /// Makes segment `number` the current one. It must not lie before the current one's successor; those in between are
  /// only searched for their markers. False: there is no such segment.
  bool enter(int number);
  /// Makes a part of the scan the current one: bytes [from, to) of it, cut at the scan's end.
  void enter_at(size_t from, size_t to);
  /// The bytes of the scan in which byte `at[i]` of the current segment begins; ascending, and inside.
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
