// The bytes of a scan, segment by segment: without stuffing, cut at the restart markers.
#include "core/jpeg/scan_bytes.h"

#include "core/jpeg/find_ff.h"

namespace headrace {

void ScanBytes::begin(std::span<const uint8_t> scan, size_t padding) {
  if (bytes_.size() < scan.size() + padding) bytes_.resize(scan.size() + padding);
  size_ = 0;
  next_ = scan.data();
  end_ = next_ + scan.size();
  number_ = 0;
  more_ = true;
}

bool ScanBytes::enter(int number) {
  while (more_ && number_ < number) more_ = pass();
  if (!more_) return false;
  copy();
  return true;
}

/// Moves behind the next restart marker. False: there is none.
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

/// Copies segment `number_` without stuffing, and moves behind the restart marker that ends it.
void ScanBytes::copy() {
  uint8_t* out = bytes_.data();
  const uint8_t* p = next_;
  more_ = false;
  while (p < end_) {
    p = copy_until_ff(p, end_, &out);
    while (p < end_ && *p == 0xFF) ++p;  // more than one only before a restart marker
    if (p == end_) break;
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
