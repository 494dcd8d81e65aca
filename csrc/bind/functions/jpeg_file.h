// A plain JPEG whose markers are read once, for the functions that decode it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

inline std::span<const uint8_t> bytes_of(const pybind11::bytes& data) {
  const std::string_view view = data;  // not a copy
  return {reinterpret_cast<const uint8_t*>(view.data()), view.size()};
}

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
  std::span<const uint8_t> bytes() const { return bytes_of(data_); }
  const JpegHeader& header() const { return header_; }

 private:
  pybind11::bytes data_;
  JpegHeader header_;
};

}  // namespace headrace
