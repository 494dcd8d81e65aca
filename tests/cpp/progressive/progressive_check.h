// Our reader of progressive scans beside libjpeg's: the same coefficients, from each set of loops.
#pragma once

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <span>
#include <vector>

#include "core/jpeg/progressive/progressive_decoder.h"
// jpeglib.h needs FILE.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace headrace::test {

/// The coefficients of a window, line by line of each row of MCUs, or none where they are refused.
inline std::vector<int16_t> window_of(const ScanLoops& loops, std::span<const uint8_t> data, const JpegHeader& header,
                                      const McuWindow& window) {
  ProgressiveDecoder decoder(loops);
  std::vector<int16_t> all;
  if (!decoder.begin(data, header, window)) return {};
  for (int row = window.first_row; row <= window.last_row; ++row) {
    if (!decoder.read(row)) return {};
    for (int c = 0; c < header.components; ++c) {
      const JpegComponent& component = header.component[static_cast<size_t>(c)];
      const int h = header.components == 1 ? 1 : component.h, v = header.components == 1 ? 1 : component.v;
      const auto values =
          static_cast<size_t>(window.last_column - window.first_column + 1) * static_cast<size_t>(h) * 64;
      for (int y = 0; y < v; ++y) {
        const int16_t* const line = decoder.line(c, row, y);
        all.insert(all.end(), line, line + values);
      }
    }
  }
  return all;
}

/// The same by libjpeg, which conceals damage. None where it stops.
inline std::vector<int16_t> window_of_libjpeg(std::span<const uint8_t> data, const JpegHeader& header,
                                              const McuWindow& window) {
  struct Escape {
    jpeg_error_mgr errors;  // first: libjpeg's pointer to it is a pointer to this
    std::jmp_buf jump;
  } escape;
  static std::vector<int16_t> all;  // not lost by a longjmp
  all.clear();
  jpeg_decompress_struct cinfo;
  cinfo.err = jpeg_std_error(&escape.errors);
  escape.errors.error_exit = [](j_common_ptr at) { std::longjmp(reinterpret_cast<Escape*>(at->err)->jump, 1); };
  escape.errors.emit_message = [](j_common_ptr, int) {};
  jpeg_create_decompress(&cinfo);
  if (setjmp(escape.jump) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return {};
  }
  jpeg_mem_src(&cinfo, data.data(), static_cast<unsigned long>(data.size()));
  jpeg_read_header(&cinfo, TRUE);
  jvirt_barray_ptr* const arrays = jpeg_read_coefficients(&cinfo);
  for (int row = window.first_row; row <= window.last_row; ++row)
    for (int c = 0; c < header.components; ++c) {
      const bool gray = header.components == 1;
      const auto h = static_cast<JDIMENSION>(gray ? 1 : cinfo.comp_info[c].h_samp_factor);
      const auto v = static_cast<JDIMENSION>(gray ? 1 : cinfo.comp_info[c].v_samp_factor);
      for (JDIMENSION y = 0; y < v; ++y) {
        const JBLOCKARRAY lines = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo), arrays[c],
                                                                static_cast<JDIMENSION>(row) * v + y, 1, FALSE);
        const int16_t* const first = lines[0][static_cast<JDIMENSION>(window.first_column) * h];
        const auto blocks = static_cast<size_t>(window.last_column - window.first_column + 1) * h;
        all.insert(all.end(), first, first + blocks * 64);
      }
    }
  jpeg_destroy_decompress(&cinfo);
  return all;
}

/// What is wrong, or nullptr.
inline const char* check_progressive(std::span<const uint8_t> data, const JpegHeader& header, Box box) {
  int h = 1, v = 1;
  for (int c = 0; header.components > 1 && c < header.components; ++c) {
    h = std::max<int>(h, header.component[static_cast<size_t>(c)].h);
    v = std::max<int>(v, header.component[static_cast<size_t>(c)].v);
  }
  const McuWindow window{box.y / (8 * v), (box.y + box.height - 1) / (8 * v), box.x / (8 * h),
                         (box.x + box.width - 1) / (8 * h)};
  const std::vector<int16_t> plain = window_of(kPlainScans, data, header, window);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("bmi2") && window_of(kBmi2Scans, data, header, window) != plain)
    return "other coefficients with BMI2";
#endif
  if (plain.empty()) return nullptr;
  return window_of_libjpeg(data, header, window) == plain ? nullptr : "other coefficients than libjpeg's";
}

}  // namespace headrace::test
