// Decodes a box of a JPEG with libjpeg-turbo alone, as bench/ceiling/ceiling.cpp does, into one row of memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

// It needs cstdio before it.
#include <jpeglib.h>

#include "core/base/geometry.h"

namespace headrace {

/// Ends the program at an error: the files were decoded once before.
class LibraryCrop {
 public:
  LibraryCrop() {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~LibraryCrop() { jpeg_destroy_decompress(&info_); }
  LibraryCrop(const LibraryCrop&) = delete;
  LibraryCrop& operator=(const LibraryCrop&) = delete;

  void decode(std::span<const uint8_t> bytes, Box box) {
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info_);
    // Fancy upsampling looks one pixel to the side.
    JDIMENSION left = static_cast<JDIMENSION>(std::max(box.x - 1, 0));
    JDIMENSION width = std::min(static_cast<JDIMENSION>(box.x + box.width + 1), info_.output_width) - left;
    jpeg_crop_scanline(&info_, &left, &width);
    if (box.y > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(box.y));
    row_.resize(std::max(row_.size(), size_t{3} * width));
    JSAMPROW row = row_.data();
    for (int y = 0; y < box.height; ++y) jpeg_read_scanlines(&info_, &row, 1);
    jpeg_abort_decompress(&info_);
  }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::vector<uint8_t> row_;
};

}  // namespace headrace
