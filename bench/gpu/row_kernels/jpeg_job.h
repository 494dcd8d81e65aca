// The arguments of the two kernels that decode JPEGs: plain records, with the same layout on the host and on the
// device.
#pragma once

#include <cstdint>

#include "core/base/pixel_math.h"

#if defined(__CUDACC__)
#define HEADRACE_PRAGMA(text) _Pragma(#text)
#define HEADRACE_UNROLL(times) HEADRACE_PRAGMA(unroll times)
#else
#define HEADRACE_UNROLL(times)
#endif

namespace headrace {

/// Threads of a block of the entropy kernel, each of which decodes one row of MCUs.
inline constexpr int kLanes = 32;
/// Bytes of a scan are read in chunks of this many words.
inline constexpr int kChunkWords = 4;
/// Pairs of a DC and an AC table that an image may use.
inline constexpr int kTablePairs = 2;

/// A table as in a DHT segment.
struct CodeTable {
  uint8_t lengths[16] = {};  // number of codes of 1 to 16 bits
  uint8_t symbols[256] = {};
};

/// A row of MCUs. Its bytes, without stuffing, are whole chunks of the batch's bytes.
struct RowJob {
  uint32_t first_chunk = 0, chunks = 0;    // chunks: at least 1
  uint32_t first_bit = 0;                  // of the first chunk
  uint32_t least_bits = 0, most_bits = 0;  // of the chunks, up to the end of the last wanted block
  int16_t dc[3] = {};                      // the predictions before the row
  int16_t unused = 0;
};

/// The blocks of one component that an image's crop needs, and where their samples go.
struct PlaneJob {
  uint8_t* samples = nullptr;
  int32_t stride = 0;                           // bytes; a multiple of 8
  int32_t width = 0, blocks = 0;                // in blocks: of a line, of all lines
  uint8_t h = 1, v = 1, first = 0, unused = 0;  // blocks of an MCU: columns, lines, the first one's number
  uint16_t quant[64] = {};                      // zigzag
};

struct JpegJob {
  CodeTable dc[kTablePairs], ac[kTablePairs];
  // Two bits for each block of an MCU, the first one's last: which pair of tables; whether it is the last one of a
  // component.
  uint32_t pattern = 0;
  int32_t pairs = 1;                // that are used
  int32_t mcu_blocks = 1;           // at most 10
  int32_t skipped = 0, wanted = 0;  // blocks of a row of MCUs: left of the crop, in it
  int32_t columns = 0;              // wanted MCUs of a row
  int16_t* coefficients = nullptr;  // [row][MCU][block][64], zigzag; zero before the entropy kernel
  int32_t components = 1;
  PlaneJob plane[3];
};

/// A block of the entropy kernel: rows [first, first + count) of `rows`, all of image `image`.
struct RowsOfBlock {
  int32_t image = 0, first = 0, count = 0;
  int32_t unused = 0;
};

struct JpegLaunch {
  const JpegJob* images = nullptr;
  const RowJob* rows = nullptr;
  const int32_t* row_of_image = nullptr;  // for each of `rows`: its number among the image's wanted rows
  const RowsOfBlock* row_blocks = nullptr;
  const uint32_t* bytes = nullptr;  // chunks, 16-byte aligned
  uint32_t* failed = nullptr;       // for each image: zero before; not zero: the CPU decodes it
};

}  // namespace headrace
