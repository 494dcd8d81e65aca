// Runs the stages of one sample and times them.
#include "core/making/sample_maker.h"

#include "core/base/error.h"
#include "core/jpeg/jpeg_header.h"

namespace headrace {
namespace {

// Forwards rows and measures the time that the sinks behind it take.
class TimedSink final : public RowSink {
 public:
  explicit TimedSink(RowSink& next) : next_(next) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    const int64_t begin = now_ns();
    next_.push(rows, stride, count);
    spent_ns_ += now_ns() - begin;
  }
  int64_t spent_ns() const { return spent_ns_; }

 private:
  RowSink& next_;
  int64_t spent_ns_ = 0;
};

}  // namespace

JpegHeader plain_header(std::span<const uint8_t> bytes, const SampleOptions& options) {
  if (options.pillow_alone) throw NeedsPillow(Stage::kHeader, "palette indices are wanted");
  const JpegHeader header = parse_jpeg_header(bytes);
  if (header.not_plain != nullptr) throw NeedsPillow(Stage::kHeader, header.not_plain);
  if (options.max_pixels > 0 && int64_t{header.size.width} * header.size.height > options.max_pixels) {
    throw NeedsPillow(Stage::kHeader, "more pixels than PIL.Image.MAX_IMAGE_PIXELS");
  }
  return header;
}

Output SampleMaker::output(const Batch& batch, int sample) const {
  const OutputStrides& strides = options_.strides;
  return {batch.memory + static_cast<size_t>(batch.place(sample)) * strides.sample_bytes,
          strides.channel_stride,
          strides.row_stride,
          strides.pixel_stride,
          {strides.element_bytes, strides.channels, lut_},
          options_.erased.data()};
}

void SampleMaker::make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) {
  const Plan plan = resolve(options_.recipe, draws, image.size, options_.recipe.last_segment());
  const Output out = output(batch, sample);
  if (image.channels == kPixelBytes) {
    fuser_.run(plan, image.data, static_cast<size_t>(image.row_stride), image.size, out);
  } else {
    raw_rows_.push(image, decode_box(plan, image.size), fuser_.begin(plan, image.size, out));
  }
}

bool SampleMaker::make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                       int sample, bool /*may_offload*/) {
  since_timed_ = (since_timed_ + 1) % kTimedShare;
  const bool timed = since_timed_ == 0 || stats.recording();
  const int64_t begin = timed ? now_ns() : 0;
  const JpegHeader header = plain_header(bytes, options_);
  batch->sizes[static_cast<size_t>(sample)] = header.size;
  const Plan plan = resolve(options_.recipe, draws, header.size);
  const Output out = output(*batch, sample);
  RowSink& sink = fuser_.begin(plan, header.size, out);
  const Box box = decode_box(plan, header.size);
  if (!timed) {
    decoder_.decode(bytes, header, box, sink);
    return true;
  }

  TimedSink timed_sink(sink);
  const int64_t planned = now_ns();
  decoder_.decode(bytes, header, box, timed_sink);
  const int64_t end = now_ns();
  // Decoding and resizing alternate every few rows. The spans show them one after the other, with their total times.
  const int64_t decoded = end - timed_sink.spent_ns();
  stats.add(Clock::kHeader, begin, planned);
  stats.add(Clock::kDecode, planned, decoded);
  stats.add(Clock::kResize, decoded, end);
  return true;
}

}  // namespace headrace
