// Rows of PNGs with the Paeth filter, several at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// How many rows with the Paeth filter `undo_paeth_rows` undoes at once. `pixel`: bytes of a whole pixel.
int paeth_rows_at_once(int pixel);

/// Undoes the Paeth filter of `paeth_rows_at_once(pixel)` rows in place. `first`: the `bytes` bytes, whole pixels, of
/// the first one; the others follow at distances of `stride`. `above`: those of the finished row before. Two bytes
/// after each row are read, too.
void undo_paeth_rows(uint8_t* first, size_t stride, const uint8_t* above, size_t bytes, int pixel);

}  // namespace headrace
