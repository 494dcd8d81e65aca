// Parts of coded scans that decoders are compared on: rows and columns, damage.
#pragma once

#include <optional>
#include <vector>

#include "huffman/coded_image.h"

namespace headrace::test {

inline constexpr size_t kEnough = size_t{1} << 24;  // bytes of entry points
inline constexpr int kTall = 24;                    // rows

struct Rows {
  int first = 0, last = kTall - 1;
  int most = kTall * kColumns;  // MCUs that are taken
};

inline Rows random_rows(Random& random) {
  Rows rows;
  rows.first = draw(random, 0, kTall - 1);
  rows.last = draw(random, rows.first, kTall - 1);
  if (draw(random, 0, 3) == 0) rows.most = draw(random, 0, rows.most);
  return rows;
}

inline void random_columns(Random& random, HuffmanScan* scan) {
  scan->first_column = draw(random, 0, kColumns - 1);
  scan->last_column = draw(random, scan->first_column, kColumns - 1);
}

/// The coefficients of the wanted MCUs in natural order; nothing where the decoder refuses. lanes null: one by one.
inline std::optional<std::vector<int16_t>> decode(HuffmanDecoder& decoder, const HuffmanScan& scan, Rows rows,
                                                  const RowLanes* lanes) {
  decoder.begin(scan);
  if (lanes != nullptr) decoder.decode_ahead(*lanes, rows.first, rows.last);
  for (int mcu = 0; mcu < rows.first * kColumns; ++mcu) decoder.next_mcu(nullptr);
  std::vector<int16_t> found;
  for (int mcu = rows.first * kColumns; mcu < (rows.last + 1) * kColumns && rows.most > 0; ++mcu, --rows.most) {
    int16_t blocks[kBlocks][64] = {};
    int16_t(*pointers[kBlocks])[64] = {&blocks[0], &blocks[1], &blocks[2], &blocks[3]};
    if (!decoder.next_mcu(pointers)) return {};
    const int column = mcu % kColumns;
    if (column >= scan.first_column && column <= scan.last_column)
      found.insert(found.end(), &blocks[0][0], &blocks[0][0] + kBlocks * 64);
  }
  return found;
}

inline void change_bytes(Random& random, Coded* coded) {
  const int changes = draw(random, 1, 3);
  for (int i = 0; i < changes; ++i) {
    const size_t at = static_cast<size_t>(draw(random, 1, static_cast<int>(coded->bytes.size()) - 1));
    if (coded->bytes[at] == 0xFF || coded->bytes[at - 1] == 0xFF) continue;  // markers stay as they are
    coded->bytes[at] = static_cast<uint8_t>(draw(random, 0, 254));
  }
}

}  // namespace headrace::test
