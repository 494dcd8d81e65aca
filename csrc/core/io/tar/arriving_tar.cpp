// Repeats a step of the walk until the bytes that it reads have arrived.
#include "core/io/tar/arriving_tar.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

struct NotArrived {};

}  // namespace

size_t ArrivingTar::Window::read(uint8_t* to, size_t length, uint64_t offset) const {
  const uint64_t last = offset < whole ? offset + std::min<uint64_t>(length, whole - offset) : offset;
  if (last > arrived) throw NotArrived();
  for (const Piece& piece : pieces) {
    const uint64_t from = std::max(offset, piece.begin), until = std::min(last, piece.end());
    if (from < until) std::memcpy(to + (from - offset), piece.bytes->data() + (from - piece.begin), until - from);
  }
  return static_cast<size_t>(last - offset);
}

std::span<const uint8_t> ArrivingTar::Window::at(uint64_t offset, size_t length, std::vector<uint8_t>& joined) const {
  for (const Piece& piece : pieces) {
    if (offset >= piece.begin && offset + length <= piece.end()) {
      return std::span(*piece.bytes).subspan(static_cast<size_t>(offset - piece.begin), length);
    }
  }
  joined.resize(length);
  read(joined.data(), length, offset);
  return joined;
}

ArrivingTar::ArrivingTar(uint64_t size, uint64_t begin, std::unordered_set<std::string> wanted)
    : walk_(window_, begin), wanted_(std::move(wanted)) {
  window_.whole = size;
  window_.arrived = begin;
}

void ArrivingTar::append(SharedBytes bytes) {
  auto& pieces = window_.pieces;
  const uint64_t begin = window_.arrived;
  window_.arrived += std::min<uint64_t>(bytes->size(), window_.whole - begin);
  if (window_.arrived > begin) pieces.push_back({begin, std::move(bytes)});
  // Bytes before the next header are not read again; those of an unwanted member are dropped even as they arrive.
  while (!pieces.empty() && pieces.front().end() <= walk_.position()) pieces.pop_front();
}

ArrivingTar::Step ArrivingTar::next(ArrivedMember& member) {
  try {
    for (;;) {
      TarWalk after = walk_;  // replaces walk_ once all that it reads has arrived
      TarMember found;
      if (!after.next(found)) {
        walk_ = after;
        return Step::kEnd;
      }
      const auto [key, raw] = checked_name(found);
      if (key.empty()) {
        if (is_of_macos(found)) ++passed_;
        walk_ = after;
        continue;
      }
      std::string extension = lower_case(raw);
      const bool wanted = wanted_.contains(extension);
      if (wanted && found.offset + found.size > window_.arrived) return Step::kMore;
      if (key != key_) {
        key_ = key;
        extensions_.clear();
      }
      if (!extensions_.insert(extension).second) refuse_repeated(found, extension, key);
      member = {std::string(key), std::move(extension), found.begin, found.offset, found.size, {}, wanted};
      if (wanted) member.bytes = window_.at(found.offset, static_cast<size_t>(found.size), joined_);
      walk_ = after;
      return Step::kMember;
    }
  } catch (const NotArrived&) {
    return Step::kMore;
  }
}

}  // namespace headrace
