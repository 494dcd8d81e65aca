// A libjpeg-turbo decompressor with headrace's error handling, source and Huffman loop.
//
// Note [setjmp]: libjpeg reports errors by callbacks, which exit it by longjmp. Every libjpeg call that can fail is
// therefore in a JpegSession function that returns bool and calls setjmp. These functions own nothing with a
// destructor, read no local variable after the longjmp, and never call a sink, which may throw.
#pragma once

#include <array>
#include <csetjmp>
#include <cstdint>
#include <span>

#include "core/base/error.h"
#include "core/jpeg/sequential/huffman.h"
#include "core/jpeg/sequential/jpeg_header.h"

// Each of these headers needs those before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#ifndef LIBJPEG_TURBO_VERSION
#error "headrace needs libjpeg-turbo: IJG's libjpeg has neither jpeg_crop_scanline nor four-byte pixels"
#endif

namespace headrace {

/// The reason for Pillow to decode a scan that our own loop refuses.
inline constexpr const char* kDamagedHuffman = "damaged or irregular Huffman-coded data";

/// Whether the library was built with its vector code, whose inverse DCT equals Pillow's even for coefficients that no
/// encoder makes: see Note [16-bit inverse]. Where it was not (cmake/libjpeg_turbo.cmake), it makes no samples.
#ifdef HEADRACE_JPEG_IN_C
inline constexpr bool kLibraryHasVectors = false;
#else
inline constexpr bool kLibraryHasVectors = true;
#endif
inline constexpr const char* kNeedsVectors = "a kind of JPEG for which this build has no exact decoder";

/// Whether our own Huffman loop reads this file, see own_huffman_wanted().
bool has_own_huffman(const JpegHeader& header);

/// If a call returns false, `message` says why, and abort() prepares the session for the next image. Not thread-safe.
class JpegSession {
 public:
  JpegSession() = default;
  ~JpegSession() { jpeg_destroy_decompress(&cinfo); }
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  /// Creates the decompressor. Call once, before all others.
  bool create();
  /// Reads the header, which must be the one that `header` describes.
  bool read_header(std::span<const uint8_t> data, const JpegHeader& header);
  /// Begins the scan for our own Huffman loop, with columns [left, right) of pixels. Call after read_header(), if
  /// has_own_huffman(header).
  HuffmanDecoder& begin_huffman(std::span<const uint8_t> data, const JpegHeader& header, int left, int right);

  /// Prepares to read columns [*left, *left + *width), which it widens to what libjpeg can crop. Call after
  /// read_header().
  bool start(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION* left, JDIMENSION* width);
  /// Skips `count` rows of pixels.
  bool skip(JDIMENSION count);
  /// Reads the next `count` rows (at most kBatchRows) as RGBX: `stride` bytes apart, the first to `first`.
  bool read(uint8_t* first, size_t stride, int count);

  /// Switches to reading the samples of the components instead of pixels, one row of iMCUs at a time.
  bool use_planes();
  /// Skips `count` rows of iMCUs; only before the first read_planes.
  bool skip_imcu_rows(int count);
  /// Reads the next row of iMCUs. rows[component][row] points to where a row of samples goes.
  bool read_planes(JSAMPIMAGE rows);

  void abort() {
    huffman_.keep_learned_entries();
    jpeg_abort_decompress(&cinfo);
  }

  static constexpr int kBatchRows = 16;

  jpeg_decompress_struct cinfo{};
  EntryPoints* entry_points = nullptr;  // for images whose reading begins later; null: none are used or learned
  char message[JMSG_LENGTH_MAX] = {};   // why the last call failed

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
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf escape_{};
  HuffmanDecoder huffman_;
  std::array<HuffmanSpec, 8> specs_;  // DC 0 to 3, AC 0 to 3
};

/// The scope of one image: at its end the session is prepared for the next one, even if rows were not read.
class JpegImage {
 public:
  explicit JpegImage(JpegSession& session) : session_(session) {}
  ~JpegImage() { session_.abort(); }
  JpegImage(const JpegImage&) = delete;
  JpegImage& operator=(const JpegImage&) = delete;

  /// Throws NeedsPillow if `fine`, the result of a call to the session, is false.
  void require(bool fine) const {
    if (!fine) throw NeedsPillow(Stage::kDecode, session_.message);
  }

 private:
  JpegSession& session_;
};

}  // namespace headrace
