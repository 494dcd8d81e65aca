// Decodes a box of a JPEG to planes of samples: with our own loops if the file is of a usual kind, else with
// libjpeg-turbo. Each worker has one decoder.
#pragma once

#include <memory>
#include <span>

#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/planes/plane_layout.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

class PlaneDecoder {
 public:
  /// `loops`: as JpegDecoder has it.
  explicit PlaneDecoder(const BlockLoops* loops);
  ~PlaneDecoder();
  PlaneDecoder(const PlaneDecoder&) = delete;
  PlaneDecoder& operator=(const PlaneDecoder&) = delete;

  /// Writes layout.bytes bytes to `to`: the samples that libjpeg's own upsampling and colour conversion start from.
  /// `header`: parse_jpeg_header(data) with not_plain == nullptr; `layout`: made from it. Throws NeedsPillow at the
  /// first warning or error of libjpeg. `entry_points`: as in JpegDecoder::decode.
  void decode(std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout, uint8_t* to,
              EntryPoints* entry_points = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
