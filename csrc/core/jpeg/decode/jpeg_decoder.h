// Decodes a box of a JPEG to RGBX rows: with our own loops if the file is of a usual kind, else with libjpeg-turbo.
// Each worker has one decoder.
#pragma once

#include <memory>
#include <span>

#include "core/base/geometry.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

class JpegDecoder {
 public:
  /// `loops`: those of kernels(). nullptr: all files are decoded with libjpeg-turbo's loops.
  explicit JpegDecoder(const BlockLoops* loops);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Pushes box.height rows of box.width pixels, equal to those of a full decode by Pillow. `header`:
  /// parse_jpeg_header(data) with not_plain == nullptr; `box` must be inside the image. Throws NeedsPillow at the first
  /// warning or error of libjpeg: rows pushed before are then invalid. `entry_points`: where the rows of MCUs begin;
  /// read and updated, unless all codes up to the box's last row are needed and rows are not decoded side by side;
  /// null: none.
  void decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink,
              EntryPoints* entry_points = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
