// Decodes the files of samples on one thread, and times the stages of one sample in kTimedShare.
#include "core/pipeline/workers/timed_decoder.h"

#include "core/base/error.h"
#include "core/base/platform/pages.h"
#include "core/pipeline/batch/sample_worker.h"

namespace headrace {
namespace {

// What every file that is decoded here has to be, JPEG or PNG. `turned`: it may have an orientation.
void require_plain(const char* not_plain, Size size, bool turned, const SampleOptions& options) {
  if (not_plain != nullptr) throw NeedsPillow(Stage::kHeader, not_plain);
  if (options.upright && turned) throw NeedsPillow(Stage::kHeader, "an orientation, which Pillow applies");
  if (options.max_pixels > 0 && int64_t{size.width} * size.height > options.max_pixels) {
    throw NeedsPillow(Stage::kHeader, "more pixels than PIL.Image.MAX_IMAGE_PIXELS");
  }
}

// Forwards rows and measures the time that the sinks after it take.
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
  if (options.indices) throw NeedsPillow(Stage::kHeader, "palette indices are wanted");
  const JpegHeader header = parse_jpeg_header(bytes);
  require_plain(header.not_plain, header.size, header.turned, options);
  return header;
}

PngHeader plain_png_header(std::span<const uint8_t> bytes, const SampleOptions& options) {
  PngHeader header = parse_png_header(bytes);
  require_plain(header.not_plain, header.size, header.described, options);
  return header;
}

JpegHeader TimedDecoder::header(std::span<const uint8_t> bytes, const SampleOptions& options, const StageStats& stats) {
  since_timed_ = (since_timed_ + 1) % kTimedShare;
  timed_ = since_timed_ == 0 || stats.recording();
  begin_ = timed_ ? now_ns() : 0;
  return plain_header(bytes, options);
}

void TimedDecoder::touch(uint8_t* memory, size_t bytes, StageStats& stats) {
  if (!timed_) return;
  const int64_t begin = now_ns();
  if (begin_ != 0) stats.add(Clock::kHeader, begin_, begin);
  begin_ = 0;
  touch_pages(memory, bytes);
  stats.add(Clock::kMemory, begin, now_ns());
}

void TimedDecoder::decode(std::span<const uint8_t> bytes, const JpegHeader& header, Box box, RowSink& sink,
                          EntryPoints* entry_points, StageStats& stats, const std::function<void()>& after) {
  if (!timed_) {
    decoder_.decode(bytes, header, box, sink, entry_points);
    if (after) after();
    return;
  }
  TimedSink timed_sink(sink);
  const int64_t planned = now_ns();
  decoder_.decode(bytes, header, box, timed_sink, entry_points);
  // Decoding and resizing alternate every few rows. The spans show them one after another, with their total times.
  const int64_t decoded = now_ns() - timed_sink.spent_ns();
  if (after) after();
  const int64_t end = now_ns();
  if (begin_ != 0) stats.add(Clock::kHeader, begin_, planned);
  stats.add(Clock::kDecode, planned, decoded);
  stats.add(Clock::kResize, decoded, end);
}

}  // namespace headrace
