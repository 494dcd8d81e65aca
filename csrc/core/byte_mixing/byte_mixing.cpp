// Walks through the planes of a batch of bytes, from each sample to the one before it, which is then in the caches.
#include "core/byte_mixing/byte_mixing.h"

#include <cstring>
#include <vector>

namespace headrace {
namespace {

constexpr size_t kChannels = 3;

/// Calls `body` with each plane's channel, its bytes, those of the sample before it, and where its elements go.
template <class Body>
void each_plane(const ByteBatch& batch, const ByteTable& table, Body body) {
  const size_t plane = batch.height * batch.width;
  for (size_t i = batch.samples; i-- > 0;) {
    const size_t before = i == 0 ? batch.samples - 1 : i - 1;
    for (size_t c = 0; c < kChannels; ++c) {
      const ByteChannel of{table.entries + c * 256, table.by.mean[c], table.by.deviation[c], table.by.inverse[c]};
      const size_t at = (i * kChannels + c) * plane;
      body(of, batch.bytes + at, batch.bytes + (before * kChannels + c) * plane, batch.to + at);
    }
  }
}

}  // namespace

void mix_bytes(const ByteBatch& batch, const ByteTable& table, float share, float rest, const ByteLoops& loops) {
  const size_t plane = batch.height * batch.width;
  each_plane(batch, table, [&](const ByteChannel& of, const uint8_t* own, const uint8_t* other, float* to) {
    loops.mixed(own, other, to, plane, of, share, rest);
  });
}

void cut_bytes(const ByteBatch& batch, const ByteTable& table, const ByteBox& box, const ByteLoops& loops) {
  const size_t plane = batch.height * batch.width;
  if (box.left >= box.right || box.top >= box.bottom) {
    each_plane(batch, table, [&](const ByteChannel& of, const uint8_t* own, const uint8_t*, float* to) {
      loops.plain(own, to, plane, of);
    });
    return;
  }
  const size_t first = box.top * batch.width, end = box.bottom * batch.width;
  std::vector<uint8_t> rows(end - first);  // bytes of both samples
  each_plane(batch, table, [&](const ByteChannel& of, const uint8_t* own, const uint8_t* other, float* to) {
    std::memcpy(rows.data(), own + first, rows.size());
    for (size_t at = box.left; at < rows.size(); at += batch.width) {
      std::memcpy(rows.data() + at, other + first + at, box.right - box.left);
    }
    loops.plain(own, to, first, of);
    loops.plain(rows.data(), to + first, rows.size(), of);
    loops.plain(own + end, to + end, plane - end, of);
  });
}

}  // namespace headrace
