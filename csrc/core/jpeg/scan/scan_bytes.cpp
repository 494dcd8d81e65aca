// The bytes of a scan, segment by segment: without stuffing, cut at the restart markers.
#include "core/jpeg/scan/scan_bytes.h"

#include <algorithm>

#include "core/jpeg/scan/find_ff.h"

namespace headrace {

void ScanBytes::begin(std::span<const uint8_t> scan, size_t padding) {
  if (bytes_.size() < scan.size() + padding) bytes_.resize(scan.size() + padding);
  size_ = 0;
  begin_ = current_ = next_ = scan.data();
  end_ = begin_ + scan.size();
  number_ = 0;
  more_ = true;
}

bool ScanBytes::enter(int number) {
  while (more_ && number_ < number) more_ = pass();
  if (!more_) return false;
  copy(end_);
  return true;
}

void ScanBytes::enter_at(size_t from, size_t to) {
  const size_t size = static_cast<size_t>(end_ - begin_);
  to = std::min(to, size);
  next_ = begin_ + std::min(from, to);
  copy(begin_ + to);
}

void ScanBytes::to_scan(std::span<size_t> at) const {
  // Each FF that is left in the segment was followed by a zero.
  size_t counted = 0, stuffed = 0;
  for (size_t& one : at) {
    stuffed += count_ff(bytes_.data() + counted, bytes_.data() + one);
    counted = one;
    one += stuffed + static_cast<size_t>(current_ - begin_);
  }
}

/// Moves past the next restart marker. False: there is none.
bool ScanBytes::pass() {
  for (;;) {
    next_ = find_ff(next_, end_);
    while (next_ < end_ && *next_ == 0xFF) ++next_;
    if (next_ == end_) return false;
    if (*next_++ == 0) continue;
    ++number_;
    return true;
  }
}

/// Copies the segment at `next_` without stuffing, at most up to `end`, and moves past the restart marker there.
void ScanBytes::copy(const uint8_t* const end) {
  uint8_t* out = bytes_.data();
  const uint8_t* p = current_ = next_;
  more_ = false;
  while (p < end) {
    p = copy_until_ff(p, end, &out);
    while (p < end && *p == 0xFF) ++p;  // more than one only before a restart marker
    if (p == end) break;
    if (*p++ != 0) {
      more_ = true;
      break;
    }
    *out++ = 0xFF;
  }
  size_ = static_cast<size_t>(out - bytes_.data());
  next_ = p;
  ++number_;
}

}  // namespace headrace
