// Resizes an image row by row as its rows arrive, in torch's two passes of float32.
#include "core/kernels/float_resize/float_resampler.h"

#include <algorithm>
#include <cstring>

namespace headrace {

void FloatResampler::begin(const ResizeJob& job, RowSink& next) {
  next_ = &next;
  map_ = nullptr;
  begin_job(job);
}

void FloatResampler::begin(const ResizeJob& job, const float* map, FloatRowSink& next) {
  values_ = &next;
  map_ = map;
  begin_job(job);
}

void FloatResampler::begin_job(const ResizeJob& job) {
  // An axis whose size does not change gets weights of 1 in torch, which change nothing.
  along_x_ = job.in.width != job.out.width;
  along_y_ = job.in.height != job.out.height;
  crop_x_ = along_x_ ? 0 : job.want.x - job.have.x;
  elements_ = job.want.width * kPixelBytes;
  if (along_x_) {
    x_.build(job.in.width, job.out.width, job.filter, job.want.x, job.want.width, job.have.x);
    scratch_.resize(static_cast<size_t>(x_.span().size()) * kFloatScratch);
  }
  seen_ = next_row_ = kept_ = 0;
  used_ = {job.want.y - job.have.y, job.want.y - job.have.y + job.want.height};
  capacity_ = kFloatRows;
  if (along_y_) {
    y_.build(job.in.height, job.out.height, job.filter, job.want.y, job.want.height, job.have.y);
    used_ = y_.span();
    capacity_ += *std::max_element(y_.taps.data(), y_.taps.data() + y_.count);
  }
  first_ = used_.begin;
  const int row_bytes = elements_ * static_cast<int>(sizeof(float));
  window_.reset(capacity_, row_bytes);
  tall_.reset(1, row_bytes);
  out_.reset(1, elements_);
}

void FloatResampler::push(const uint8_t* rows, size_t stride, int count) {
  int begin = std::max(seen_, used_.begin);
  const int end = std::min(seen_ + count, used_.end);
  rows +=
      static_cast<size_t>(std::clamp(begin - seen_, 0, count)) * stride + static_cast<size_t>(crop_x_) * kPixelBytes;
  seen_ += count;
  const size_t row_floats = window_.stride() / sizeof(float);
  while (begin < end) {
    const int n = std::min({end - begin, kFloatRows, capacity_ - kept_});
    if (map_ != nullptr && along_x_) {
      map_along_x(rows, stride, n, row_at(window_, kept_), row_floats);
    } else if (map_ != nullptr) {
      for (int y = 0; y < n; ++y) map_row(rows + static_cast<size_t>(y) * stride, row_at(window_, kept_ + y));
    } else if (along_x_) {
      loops_.along_x(rows, stride, n, x_.view(), row_at(window_, kept_), row_floats, scratch_.data());
    } else {
      for (int y = 0; y < n; ++y) {
        loops_.widen(rows + static_cast<size_t>(y) * stride, elements_, row_at(window_, kept_ + y));
      }
    }
    begin += n;
    rows += static_cast<size_t>(n) * stride;
    kept_ += n;
    emit_ready();
  }
}

void FloatResampler::map_row(const uint8_t* row, float* to) const {
  for (int i = 0; i < elements_; i += kPixelBytes) {
    for (int c = 0; c < kPixelBytes - 1; ++c) to[i + c] = map_[c * 256 + row[i + c]];
    to[i + kPixelBytes - 1] = 0;
  }
}

void FloatResampler::map_along_x(const uint8_t* rows, size_t stride, int count, float* to, size_t to_stride) {
  const Span span = x_.span();
  const uint8_t* from[kFloatRows];
  for (int y = 0; y < kFloatRows; ++y) {
    from[y] = rows + static_cast<size_t>(std::min(y, count - 1)) * stride + span.begin * kPixelBytes;
  }
  float* pixel = scratch_.data();
  for (int x = 0; x < span.size(); ++x) {
    for (const uint8_t*& at : from) {
      pixel[0] = map_[at[0]];
      pixel[1] = map_[256 + at[1]];
      pixel[2] = map_[512 + at[2]];
      pixel[3] = 0;
      at += kPixelBytes;
      pixel += kPixelBytes;
    }
  }
  loops_.sum_x(x_.view(), scratch_.data(), count, to, to_stride);
}

void FloatResampler::pass_on(const float* row) {
  if (map_ != nullptr) {
    values_->push(row);
    return;
  }
  loops_.narrow(row, elements_, out_.row(0));
  next_->push(out_.row(0), out_.stride(), 1);
}

void FloatResampler::emit_ready() {
  if (!along_y_) {
    for (int y = 0; y < kept_; ++y) pass_on(row_at(window_, y));
    kept_ = 0;
    return;
  }
  for (; next_row_ < y_.count; ++next_row_) {
    const int at = y_.start[next_row_] - first_;
    if (at + y_.taps[next_row_] > kept_) break;
    float* made = row_at(tall_, 0);
    loops_.along_y(row_at(window_, at), window_.stride() / sizeof(float), y_.view(), next_row_, elements_, made);
    pass_on(made);
  }
  if (kept_ < capacity_ || next_row_ == y_.count) return;
  const int done = std::min(y_.start[next_row_] - first_, kept_);
  std::memmove(window_.row(0), window_.row(done), window_.stride() * static_cast<size_t>(kept_ - done));
  first_ += done;
  kept_ -= done;
}

}  // namespace headrace
