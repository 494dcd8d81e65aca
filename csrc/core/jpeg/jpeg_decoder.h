// Turns JPEG bytes into the RGBX rows of a box, through libjpeg-turbo; one decoder a worker.
#pragma once

#include <memory>
#include <span>

#include "core/base/geometry.h"
#include "core/jpeg/jpeg_header.h"

namespace headrace {

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Pushes exactly box.height rows of box.width pixels, the very bytes that a full decode by Pillow has there.
  /// `header` is parse_jpeg_header(data) with not_plain == nullptr; `box` lies inside the image.
  /// Throws NeedsPillow at the first warning or error of libjpeg: rows already pushed are then void.
  void decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
