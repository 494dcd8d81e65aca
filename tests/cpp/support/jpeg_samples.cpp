// Makes small JPEGs of every kind for the tests, and decodes them whole with libjpeg's simplest calls: the reference.
#include "support/jpeg_samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include "core/jpeg/decode/jpeg_decoder.h"

namespace headrace::test {
namespace {

/// Smooth waves with noise on top: every coefficient and long codes occur.
std::vector<uint8_t> make_pixels(int width, int height, int channels) {
  std::vector<uint8_t> pixels;
  uint32_t random = 1;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        random = random * 1664525u + 1013904223u;
        const double wave = std::sin(x / 3.1 + y / 7.0 + c) + std::cos(y / 2.3 - x / 5.0 * c);
        pixels.push_back(static_cast<uint8_t>(128 + 45 * wave + static_cast<double>(random >> 27)));
      }
  return pixels;
}

}  // namespace

std::vector<uint8_t> make_jpeg(const JpegOptions& options) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);  // an error here ends the test program: the options come from tests
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  cinfo.image_width = static_cast<JDIMENSION>(options.width);
  cinfo.image_height = static_cast<JDIMENSION>(options.height);
  cinfo.input_components = options.components;
  cinfo.in_color_space = options.components == 1 ? JCS_GRAYSCALE : options.components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&cinfo);
  if (options.rgb) jpeg_set_colorspace(&cinfo, JCS_RGB);
  jpeg_set_quality(&cinfo, options.quality, TRUE);
  for (int i = 0; i < options.components && i < 3; ++i) {
    cinfo.comp_info[i].h_samp_factor = options.h[static_cast<size_t>(i)];
    cinfo.comp_info[i].v_samp_factor = options.v[static_cast<size_t>(i)];
  }
  cinfo.optimize_coding = options.optimal_tables ? TRUE : FALSE;
  cinfo.restart_in_rows = options.restart_rows;
  if (options.progressive) jpeg_simple_progression(&cinfo);
  jpeg_scan_info scans[4];
  if (!options.interleaved) {
    for (int i = 0; i < options.components; ++i) scans[i] = {1, {i, 0, 0, 0}, 0, 63, 0, 0};
    cinfo.scan_info = scans;
    cinfo.num_scans = options.components;
  }
  std::vector<uint8_t> pixels = make_pixels(options.width, options.height, options.components);
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    JSAMPROW row = &pixels[static_cast<size_t>(cinfo.next_scanline) * static_cast<size_t>(options.width) *
                           static_cast<size_t>(options.components)];
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::vector<uint8_t> jpeg(memory, memory + size);
  std::free(memory);
  return jpeg;
}

std::vector<uint8_t> make_jpeg_of_blocks(int width, int height, const std::vector<int16_t>& blocks,
                                         const uint16_t (&quant)[64]) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  errors.emit_message = [](j_common_ptr, int) {};  // it warns of coarse tables
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  const JDIMENSION across = static_cast<JDIMENSION>(width), down = static_cast<JDIMENSION>(height);
  cinfo.image_width = 8 * across;
  cinfo.image_height = 8 * down;
  cinfo.input_components = 1;
  cinfo.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&cinfo);
  std::copy(std::begin(quant), std::end(quant), cinfo.quant_tbl_ptrs[0]->quantval);
  cinfo.optimize_coding = TRUE;
  const j_common_ptr common = reinterpret_cast<j_common_ptr>(&cinfo);
  jvirt_barray_ptr array = cinfo.mem->request_virt_barray(common, JPOOL_IMAGE, TRUE, across, down, 1);
  cinfo.mem->realize_virt_arrays(common);
  const int16_t* from = blocks.data();
  for (JDIMENSION y = 0; y < down; ++y)
    for (JDIMENSION x = 0; x < across; ++x, from += 64)
      std::copy(from, from + 64, cinfo.mem->access_virt_barray(common, array, y, 1, TRUE)[0][x]);
  jpeg_write_coefficients(&cinfo, &array);
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::vector<uint8_t> jpeg(memory, memory + size);
  std::free(memory);
  return jpeg;
}

void BoxSink::push(const uint8_t* rows, size_t stride, int count) {
  const size_t bytes = static_cast<size_t>(width) * kPixelBytes;
  for (int i = 0; i < count; ++i, rows += stride) pixels.insert(pixels.end(), rows, rows + bytes);
}

std::vector<uint8_t> decode_box(const BlockLoops* loops, const std::vector<uint8_t>& jpeg, const JpegHeader& header,
                                Box box) {
  BoxSink sink(box.width);
  JpegDecoder(loops).decode(jpeg, header, box, sink);
  return sink.pixels;
}

std::vector<uint8_t> decode_whole(const std::vector<uint8_t>& jpeg) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};  // tests decode damaged files
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, jpeg.data(), static_cast<unsigned long>(jpeg.size()));
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = JCS_EXT_RGBX;
  jpeg_start_decompress(&cinfo);
  const size_t row_bytes = static_cast<size_t>(cinfo.output_width) * 4;
  std::vector<uint8_t> pixels(row_bytes * cinfo.output_height);
  while (cinfo.output_scanline < cinfo.output_height) {
    JSAMPROW row = &pixels[cinfo.output_scanline * row_bytes];
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return pixels;
}

std::vector<uint8_t> part_of(const std::vector<uint8_t>& whole, int width, Box box) {
  std::vector<uint8_t> pixels;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const auto row = whole.begin() + (ptrdiff_t{y} * width + box.x) * kPixelBytes;
    pixels.insert(pixels.end(), row, row + ptrdiff_t{box.width} * kPixelBytes);
  }
  return pixels;
}

std::vector<uint8_t> with_segment(const std::vector<uint8_t>& jpeg, int marker, const std::string& body) {
  const size_t length = body.size() + 2;
  const std::array<uint8_t, 4> head{0xFF, static_cast<uint8_t>(marker), static_cast<uint8_t>(length >> 8),
                                    static_cast<uint8_t>(length & 255)};
  std::vector<uint8_t> out = jpeg;
  out.insert(out.begin() + 2, body.begin(), body.end());
  out.insert(out.begin() + 2, head.begin(), head.end());
  return out;
}

size_t find_marker(const std::vector<uint8_t>& jpeg, int marker) {
  for (size_t at = 2; at + 4 <= jpeg.size() && jpeg[at] == 0xFF;) {
    if (jpeg[at + 1] == marker) return at;
    at += 2 + static_cast<size_t>(jpeg[at + 2] << 8 | jpeg[at + 3]);
  }
  FAIL("no such marker");
  return 0;
}

}  // namespace headrace::test
