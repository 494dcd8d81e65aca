// Rows of PNGs with the Paeth filter, several at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// How rows with the Paeth filter are undone.
struct PaethRows {
  int at_once;  // rows
  /// Undoes the filter of `at_once` rows in place. `first`: the `bytes` bytes, whole pixels, of the first one; the
  /// others follow at distances of `stride`. `above`: those of the finished row before. Two bytes after each row are
  /// read, too.
  void (*undo)(uint8_t* first, size_t stride, const uint8_t* above, size_t bytes);
};

/// `pixel`: bytes of a whole pixel: 1, 2, 3, 4, 6 or 8.
PaethRows paeth_rows(int pixel);

}  // namespace headrace
