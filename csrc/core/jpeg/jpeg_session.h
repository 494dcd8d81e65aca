// One libjpeg-turbo decompressor with our error handling, our source and our Huffman loop in it.
//
// Note [setjmp]: libjpeg reports by calling back, and we leave it by longjmp. Every call into libjpeg therefore sits in
// one of the functions of JpegSession that return bool and hold a setjmp; these own nothing with a destructor, change
// no local after the setjmp, and never call a sink, which may throw.
#pragma once

#include <array>
#include <csetjmp>
#include <cstdint>
#include <span>

#include "core/base/error.h"
#include "core/jpeg/huffman.h"
#include "core/jpeg/jpeg_header.h"

// Each of these needs the ones before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#ifndef LIBJPEG_TURBO_VERSION
#error "headrace needs libjpeg-turbo: IJG's libjpeg has neither jpeg_crop_scanline nor four-byte pixels"
#endif

namespace headrace {

/// Where a call returns false, `message` says why, in libjpeg's words; `abort` makes the session fit for the next
/// image.
class JpegSession {
 public:
  JpegSession() = default;
  ~JpegSession() { jpeg_destroy_decompress(&cinfo); }
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  /// Once, before anything else.
  bool create();
  /// Reads the header and gets ready to read rows of [*left, *left + *width), widened to what libjpeg can cut.
  bool start(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION* left, JDIMENSION* width);
  /// Skips rows of pixels.
  bool skip(JDIMENSION count);
  /// The next `count` rows (at most kBatchRows) as RGBX.
  bool read(uint8_t* first, size_t stride, int count);

  /// From here on the samples of the components themselves are read, a row of iMCUs at a time.
  bool use_planes();
  /// Skips `count` rows of iMCUs; only before the first read_planes.
  bool skip_imcu_rows(int count);
  /// The next row of iMCUs: rows[component][row] point to where its rows of samples go.
  bool read_planes(JSAMPIMAGE rows);

  void abort() { jpeg_abort_decompress(&cinfo); }

  static constexpr int kBatchRows = 16;

  jpeg_decompress_struct cinfo{};
  char message[JMSG_LENGTH_MAX] = {};  // what it stopped at

 private:
  static JpegSession& of(j_common_ptr cinfo) { return *static_cast<JpegSession*>(cinfo->client_data); }
  [[noreturn]] void leave(const char* why);
  [[noreturn]] static void on_error(j_common_ptr cinfo);
  static void on_message(j_common_ptr cinfo, int level);
  static boolean on_mcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);
  static void on_output(j_common_ptr) {}
  static void source_noop(j_decompress_ptr) {}
  static boolean source_empty(j_decompress_ptr cinfo);
  static void source_skip(j_decompress_ptr cinfo, long count);
  void plug_huffman(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION left, JDIMENSION width);

  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf escape_{};
  HuffmanDecoder huffman_;
  std::array<HuffmanSpec, 8> specs_;  // DC 0 to 3, AC 0 to 3
};

/// One image: whatever ends it, the session is fit for the next one. Rows that were not read stay unread.
class JpegImage {
 public:
  explicit JpegImage(JpegSession& session) : session_(session) {}
  ~JpegImage() { session_.abort(); }
  JpegImage(const JpegImage&) = delete;
  JpegImage& operator=(const JpegImage&) = delete;

  /// For what a call to the session returned; throws NeedsPillow where it is false.
  void require(bool fine) const {
    if (!fine) throw NeedsPillow(Stage::kDecode, session_.message);
  }

 private:
  JpegSession& session_;
};

}  // namespace headrace
