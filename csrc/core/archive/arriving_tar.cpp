// Repeats a step of the walk until the bytes that it reads have arrived.
#include "core/archive/arriving_tar.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

struct NotArrived {};

}  // namespace

size_t ArrivingTar::Window::read(uint8_t* to, size_t length, uint64_t offset) const {
  const uint64_t last = offset < whole ? offset + std::min<uint64_t>(length, whole - offset) : offset;
  if (last > begin + bytes.size()) throw NotArrived();
  if (last > offset) std::memcpy(to, bytes.data() + (offset - begin), last - offset);
  return static_cast<size_t>(last - offset);
}

ArrivingTar::ArrivingTar(uint64_t size, uint64_t begin, std::unordered_set<std::string> wanted)
    : walk_(window_, begin), wanted_(std::move(wanted)) {
  window_.whole = size;
  window_.begin = begin;
}

void ArrivingTar::append(std::span<const uint8_t> bytes) {
  std::vector<uint8_t>& held = window_.bytes;
  const uint64_t arrived = window_.begin + held.size();
  bytes = bytes.first(static_cast<size_t>(std::min<uint64_t>(bytes.size(), window_.whole - arrived)));
  // What lies before the next header is not read again; of an unwanted member, not even what arrives now.
  const uint64_t needed = std::min(walk_.position(), arrived + bytes.size());
  if (needed >= arrived) {
    held.clear();
    bytes = bytes.subspan(static_cast<size_t>(needed - arrived));
  } else {
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(needed - window_.begin));
  }
  window_.begin = needed;
  held.insert(held.end(), bytes.begin(), bytes.end());
}

ArrivingTar::Step ArrivingTar::next(ArrivedMember& member) {
  try {
    for (;;) {
      TarWalk after = walk_;  // taken over once all that it reads has arrived
      TarMember found;
      if (!after.next(found)) {
        walk_ = after;
        return Step::kEnd;
      }
      const auto [key, raw] = checked_name(found);
      if (key.empty()) {
        walk_ = after;
        continue;
      }
      std::string extension = lower_case(raw);
      const bool wanted = wanted_.contains(extension);
      if (wanted && found.offset + found.size > window_.begin + window_.bytes.size()) return Step::kMore;
      if (key != key_) {
        key_ = key;
        extensions_.clear();
      }
      if (!extensions_.insert(extension).second) refuse_repeated(found, extension, key);
      member = {std::string(key), std::move(extension), found.begin, found.offset, found.size, {}, wanted};
      if (wanted) {
        member.bytes = std::span(window_.bytes)
                           .subspan(static_cast<size_t>(found.offset - window_.begin), static_cast<size_t>(found.size));
      }
      walk_ = after;
      return Step::kMember;
    }
  } catch (const NotArrived&) {
    return Step::kMore;
  }
}

}  // namespace headrace
