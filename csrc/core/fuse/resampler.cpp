// Resizes an image row by row as its rows arrive, in Pillow's two passes, keeping only the rows a window still needs.
#include "core/fuse/resampler.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr int kBlockRows = 16;  // rows taken in between two checks for complete windows; of 224 RGBX pixels: 14 KiB

}  // namespace

void Resampler::begin(const ResizeJob& job, RowSink& next) {
  next_ = &next;
  // An axis whose size does not change gets no pass, as in Pillow.
  along_x_ = job.in.width != job.out.width;
  along_y_ = job.in.height != job.out.height;
  vertical_first_ = job.vertical_first && along_x_ && along_y_;
  plane_stride_ = job.plane_stride;
  const int made_bytes = plane_stride_ ? 3 * plane_stride_ : job.want.width * kPixelBytes;
  crop_x_ = along_x_ ? 0 : job.want.x - job.have.x;
  if (along_x_) {
    x_.build(job.in.width, job.out.width, job.filter, job.want.x, job.want.width, job.have.x);
    out_.reset(kBlockRows, made_bytes);
  }
  seen_ = next_row_ = kept_ = 0;
  used_ = {job.want.y - job.have.y, job.want.y - job.have.y + job.want.height};
  if (!along_y_) return;
  y_.build(job.in.height, job.out.height, job.filter, job.want.y, job.want.height, job.have.y);
  used_ = y_.span();
  first_ = used_.begin;
  capacity_ = std::min(*std::max_element(y_.taps.data(), y_.taps.data() + y_.count) + kBlockRows, used_.size());
  kept_bytes_ = vertical_first_ ? job.have.width * kPixelBytes : made_bytes;
  window_.reset(capacity_, kept_bytes_);
  tall_.reset(kBlockRows, kept_bytes_);
}

void Resampler::push(const uint8_t* rows, size_t stride, int count) {
  const int begin = std::max(seen_, used_.begin), end = std::min(seen_ + count, used_.end);
  rows += ptrdiff_t(std::clamp(begin - seen_, 0, count)) * stride + ptrdiff_t(crop_x_) * kPixelBytes;
  seen_ += count;
  if (begin >= end) return;
  along_y_ ? collect(rows, stride, end - begin) : pass_on(rows, stride, end - begin);
}

void Resampler::pass_on(const uint8_t* rows, size_t stride, int count) {
  if (!along_x_) return next_->push(rows, stride, count);
  while (count > 0) {
    const int n = std::min(count, kBlockRows);
    kernels_.resample_x(rows, stride, n, x_.view(), out_.row(0), out_.stride(), plane_stride_);
    next_->push(out_.row(0), out_.stride(), n);
    rows += ptrdiff_t(n) * stride;
    count -= n;
  }
}

void Resampler::collect(const uint8_t* rows, size_t stride, int count) {
  while (count > 0) {
    const int n = std::min(count, capacity_ - kept_);
    if (along_x_ && !vertical_first_) {
      kernels_.resample_x(rows, stride, n, x_.view(), window_.row(kept_), window_.stride(), plane_stride_);
    } else {
      for (int i = 0; i < n; ++i) {
        std::memcpy(window_.row(kept_ + i), rows + ptrdiff_t(i) * stride, size_t(kept_bytes_));
      }
    }
    kept_ += n;
    rows += ptrdiff_t(n) * stride;
    count -= n;
    emit_ready();
  }
}

void Resampler::emit_ready() {
  // A horizontal pass is faster on many rows; the store on single rows, with its memory traffic between the sums.
  const int batch = vertical_first_ ? kBlockRows : 1;
  int made = 0;  // rows in tall_
  const auto hand_on = [&] {
    vertical_first_ ? pass_on(tall_.row(0), tall_.stride(), made) : next_->push(tall_.row(0), tall_.stride(), made);
    made = 0;
  };
  for (; next_row_ < y_.count; ++next_row_) {
    const int at = y_.start[next_row_] - first_;
    if (at + y_.taps[next_row_] > kept_) break;
    kernels_.resample_y(window_.row(at), window_.stride(), y_.view(), next_row_, kept_bytes_, tall_.row(made));
    if (++made == batch) hand_on();
  }
  if (made > 0) hand_on();
  if (kept_ < capacity_ || next_row_ == y_.count) return;
  const int done = std::min(y_.start[next_row_] - first_, kept_);
  std::memmove(window_.row(0), window_.row(done), window_.stride() * size_t(kept_ - done));
  first_ += done;
  kept_ -= done;
}

}  // namespace headrace
