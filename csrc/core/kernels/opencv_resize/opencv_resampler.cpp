// Resizes an image row by row as its rows arrive, as OpenCV's bilinear resize of bytes does.
#include "core/kernels/opencv_resize/opencv_resampler.h"

namespace headrace {

void OpencvResampler::begin(const ResizeJob& job, RowSink& next) {
  next_ = &next;
  const OpencvAxis x(job.in.width, job.out.width);
  y_ = OpencvAxis(job.in.height, job.out.height);
  columns_ = job.want.width;
  start_.resize(static_cast<size_t>(columns_));
  weight_.resize(static_cast<size_t>(columns_) * 2);
  for (int i = 0; i < columns_; ++i) {
    const OpencvAxis::Taps taps = x.column(job.want.x + i);
    start_[static_cast<size_t>(i)] = taps.first - job.have.x;
    weight_[static_cast<size_t>(i) * 2] = taps.first_weight;
    weight_[static_cast<size_t>(i) * 2 + 1] = taps.second_weight;
  }
  row_ = job.have.y;
  next_row_ = job.want.y;
  end_ = job.want.y + job.want.height;
  const int elements = columns_ * kPixelBytes;
  sums_.reset(2, elements * static_cast<int>(sizeof(int16_t)));
  out_.reset(1, elements);
}

void OpencvResampler::push(const uint8_t* rows, size_t stride, int count) {
  const OpencvColumns columns{columns_, start_.data(), weight_.data()};
  for (int i = 0; i < count && next_row_ < end_; ++i, ++row_) {
    const OpencvAxis::Taps taps = y_.row(next_row_);
    if (row_ != taps.first && row_ != taps.second) continue;
    loops_.along_x(rows + static_cast<size_t>(i) * stride, columns, sums_of(row_));
    emit_ready(row_);
  }
}

void OpencvResampler::emit_ready(int row) {
  for (; next_row_ < end_; ++next_row_) {
    const OpencvAxis::Taps taps = y_.row(next_row_);
    if (taps.second > row) return;
    loops_.along_y(sums_of(taps.first), sums_of(taps.second), taps.first_weight, taps.second_weight,
                   columns_ * kPixelBytes, out_.row(0));
    next_->push(out_.row(0), out_.stride(), 1);
  }
}

}  // namespace headrace
