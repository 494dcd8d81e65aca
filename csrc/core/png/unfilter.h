// The filters of PNG rows, undone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// Undoes the filter of a row in place, as the PNG specification defines filters 0 to 4; returns whether it is one of
/// these. `row`: the `bytes` bytes, at least 1, after that of the filter. `above`: those of the finished row before;
/// null: the first row, above which all is 0. `pixel`: bytes of a whole pixel, at least 1: 1, 2, 3, 4, 6 or 8. Two
/// bytes after each row are read, too.
bool unfilter_row(int filter, uint8_t* row, const uint8_t* above, size_t bytes, int pixel);

/// Undoes the filters of all rows of an image, which follow each other with the filter's byte before each; returns
/// whether all filters are known. `bytes`: of a row without that of its filter.
bool unfilter_rows(uint8_t* rows, size_t bytes, int height, int pixel);

}  // namespace headrace
