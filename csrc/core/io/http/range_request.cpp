// Joins neighbouring ranges, and writes requests.
#include "core/io/http/range_request.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace headrace {
namespace {

constexpr uint64_t kGap = 64 << 10;     // between two ranges: also read, to save a request
constexpr uint64_t kLargest = 8 << 20;  // of a request that several ranges share

}  // namespace

std::string RangeRequest::text() const {
  return object->head + "Range: bytes=" + std::to_string(begin()) + "-" + std::to_string(end() - 1) + "\r\n\r\n";
}

std::vector<std::vector<size_t>> joined_ranges(std::span<const RangeKey> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(keys[a].object, keys[a].offset) < std::tie(keys[b].object, keys[b].offset);
  });
  std::vector<std::vector<size_t>> groups;
  for (const size_t i : order) {
    if (!groups.empty()) {
      const RangeKey &first = keys[groups.back().front()], &last = keys[groups.back().back()], &one = keys[i];
      const uint64_t end = last.offset + last.length;
      const bool joins = one.object == last.object && end > last.offset && one.offset >= end &&
                         one.offset - end <= kGap && one.length <= kLargest &&
                         one.offset - first.offset <= kLargest - one.length;
      if (joins) {
        groups.back().push_back(i);
        continue;
      }
    }
    groups.push_back({i});
  }
  const auto earliest = [](const std::vector<size_t>& group) { return *std::min_element(group.begin(), group.end()); };
  std::sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return earliest(a) < earliest(b); });
  return groups;
}

}  // namespace headrace
