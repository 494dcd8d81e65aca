// A plain JPEG whose markers are read once, for the functions that decode it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <utility>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

/// Holds the bytes together with their header, so that no function gets the header of other bytes.
class JpegFile {
 public:
  /// Throws NeedsPillow where the file is not plain.
  explicit JpegFile(pybind11::bytes data) : data_(std::move(data)) {
    const std::span<const uint8_t> bytes = this->bytes();
    const Unlocked unlocked;
    header_ = parse_jpeg_header(bytes);
    if (header_.not_plain != nullptr) throw NeedsPillow(Stage::kHeader, header_.not_plain);
  }

  const pybind11::bytes& data() const { return data_; }
  std::span<const uint8_t> bytes() const { return span_of(data_); }
  const JpegHeader& header() const { return header_; }

 private:
  pybind11::bytes data_;
  JpegHeader header_;
};

}  // namespace headrace
