// The coefficients of a JPEG: read with libjpeg-turbo, written to another JPEG, compared. No pixel is computed.
//
// See Note [setjmp] in jpeg_session.h: the functions that return bool are exited by longjmp where libjpeg fails or
// warns.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <span>

// Each of these headers needs those before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace headrace {

/// One image's coefficients, in memory. If a call returns false, message() says why. Not thread-safe.
class Coefficients {
 public:
  Coefficients() = default;
  ~Coefficients();
  Coefficients(const Coefficients&) = delete;
  Coefficients& operator=(const Coefficients&) = delete;

  /// Reads all scans of `data`, which must outlive this. Call once, before all others. A warning is a failure.
  bool read(std::span<const uint8_t> data);
  /// Writes a JPEG of one scan into `room`, without application segments: sequential, Huffman codes that are optimal
  /// for this image, a restart marker before each row of MCUs except the first. Sets *size to its bytes. Fails if they
  /// do not fit.
  bool write(std::span<uint8_t> room, size_t* size);
  /// Whether the components, their quantisation tables and the coefficients of all blocks that hold pixels are equal.
  /// Fails as the others do; otherwise sets *equal.
  bool compare(Coefficients& other, bool* equal);

  /// Number of bytes of `data` after the EOI.
  size_t bytes_left() const { return in_.src->bytes_in_buffer; }
  const char* message() const { return escape_.message; }

 private:
  struct Escape {
    jpeg_error_mgr errors;  // first: libjpeg's pointer to it is a pointer to this
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
  };
  [[noreturn]] static void on_error(j_common_ptr cinfo);
  static void on_message(j_common_ptr cinfo, int level);
  static void on_output(j_common_ptr) {}
  static boolean on_full(j_compress_ptr cinfo);

  Escape escape_{};
  jpeg_decompress_struct in_{};
  jpeg_compress_struct out_{};
  jpeg_destination_mgr destination_{};
  jvirt_barray_ptr* arrays_ = nullptr;
};

}  // namespace headrace
