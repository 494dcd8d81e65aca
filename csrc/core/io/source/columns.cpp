// Copies rows of arrays, and asks the kernel for the pages of a large row that are not in memory.
#include "core/io/source/columns.h"

#include <cstring>

#include "core/base/platform/page_cache.h"
#include "core/io/source/stream_copy.h"

namespace headrace {
namespace {

constexpr size_t kLargeRow = size_t{256} << 10;  // below this, the kernel's readahead at a page fault covers a row

// Page faults of a mapped file read a few pages at a time. One request for the whole row keeps a disk busy. Only the
// last page is tested, because a request for pages that are in memory costs a tenth of their copy.
void request_pages(const uint8_t* row, size_t bytes) {
  if (!is_in_memory(row + bytes - 1)) request_memory(row, bytes);
}

using Axes = std::vector<Column::Axis>;

// A fixed size lets the compiler replace the call of memcpy.
template <size_t kBytes>
void copy_items(const uint8_t* from, const Column::Axis& axis, uint8_t* to) {
  for (int64_t i = 0; i < axis.count; ++i, from += axis.stride, to += kBytes) std::memcpy(to, from, kBytes);
}

void copy_runs(const uint8_t* from, const Column::Axis& axis, size_t bytes, uint8_t* to) {
  if (bytes == 1) return copy_items<1>(from, axis, to);
  if (bytes == 2) return copy_items<2>(from, axis, to);
  if (bytes == 4) return copy_items<4>(from, axis, to);
  if (bytes == 8) return copy_items<8>(from, axis, to);
  for (int64_t i = 0; i < axis.count; ++i, from += axis.stride, to += bytes) std::memcpy(to, from, bytes);
}

// Returns the end of the written bytes.
uint8_t* copy_axes(const uint8_t* from, const Axes& axes, size_t axis, size_t run, uint8_t* to) {
  const Column::Axis& own = axes[axis];
  if (axis + 1 == axes.size()) {
    copy_runs(from, own, run, to);
    return to + static_cast<size_t>(own.count) * run;
  }
  for (int64_t i = 0; i < own.count; ++i) to = copy_axes(from + i * own.stride, axes, axis + 1, run, to);
  return to;
}

}  // namespace

Column Column::of(const uint8_t* data, ptrdiff_t stride, const std::vector<Axis>& axes, size_t item_bytes) {
  Column made{data, stride, item_bytes, item_bytes, {}};
  for (const Axis& axis : axes) {
    made.row_bytes *= static_cast<size_t>(axis.count);
    if (axis.count != 1) made.axes.push_back(axis);
  }
  while (!made.axes.empty() && made.axes.back().stride == static_cast<ptrdiff_t>(made.run_bytes)) {
    made.run_bytes *= static_cast<size_t>(made.axes.back().count);
    made.axes.pop_back();
  }
  return made;
}

void Column::copy_row(int64_t row, uint8_t* to, bool past_caches) const {
  if (row_bytes == 0) return;
  const uint8_t* from = data + row * stride;
  if (!axes.empty()) {
    copy_axes(from, axes, 0, run_bytes, to);
    return;
  }
  if (row_bytes >= kLargeRow) request_pages(from, row_bytes);
  if (past_caches) return stream_copy(to, from, row_bytes);
  std::memcpy(to, from, row_bytes);
}

}  // namespace headrace
