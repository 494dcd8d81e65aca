// Binds the decoder of PNGs, for deferred images and tests.
#include <pybind11/numpy.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/png/png_decoder.h"
#include "core/png/png_header.h"

namespace py = pybind11;

namespace headrace {
namespace {

/// Holds the bytes together with their header, whose spans are parts of them.
class PngFile {
 public:
  /// Throws NeedsPillow where the file is not plain.
  explicit PngFile(py::bytes data) : data_(std::move(data)) {
    const std::span<const uint8_t> bytes = span_of(data_);
    const Unlocked unlocked;
    header_ = parse_png_header(bytes);
    if (header_.not_plain != nullptr) throw NeedsPillow(Stage::kHeader, header_.not_plain);
  }

  const PngHeader& header() const { return header_; }

 private:
  py::bytes data_;
  PngHeader header_;
};

PngDecoder& decoder_of_this_thread() {
  thread_local PngDecoder decoder;
  return decoder;
}

void decode_png(const PngFile& file, py::array_t<uint8_t> out, bool whole) {
  const PngHeader& header = file.header();
  if (out.ndim() != 3 || out.shape(0) != header.size.height || out.shape(1) != header.size.width ||
      out.shape(2) != (whole ? png_whole_bytes(header) : png_pixel_bytes(header)) ||
      !(out.flags() & py::array::c_style)) {
    throw py::value_error("out: contiguous, of shape (height, width, pixel_bytes or whole_bytes) as the file has them");
  }
  uint8_t* const to = out.mutable_data();
  const Unlocked unlocked;
  PngDecoder& decoder = decoder_of_this_thread();
  whole ? decoder.write_whole_samples(header, to) : decoder.write_samples(header, to);
}

}  // namespace

void bind_png(py::module_& m) {
  py::class_<PngFile>(m, "PngFile", "A plain PNG, whose chunks are read once. Raises NeedsPillow for other bytes.")
      .def(py::init<py::bytes>(), py::arg("data"))
      .def_property_readonly("width", [](const PngFile& file) { return file.header().size.width; })
      .def_property_readonly("height", [](const PngFile& file) { return file.header().size.height; })
      .def_property_readonly(
          "depth", [](const PngFile& file) { return file.header().depth; }, "Bits a sample: 1, 2, 4, 8 or 16.")
      .def_property_readonly(
          "colour", [](const PngFile& file) { return static_cast<int>(file.header().colour); },
          "The colour type: 0 gray, 2 RGB, 3 palette, 4 gray with alpha, 6 RGBA.")
      .def_property_readonly(
          "palette",
          [](const PngFile& file) {
            const std::span<const uint8_t> palette = file.header().palette;
            return py::bytes(reinterpret_cast<const char*>(palette.data()), palette.size());
          },
          "R, G, B of each entry; b\"\" without a palette.")
      .def_property_readonly(
          "transparency", [](const PngFile& file) { return file.header().transparency; },
          "Whether it has a tRNS chunk.")
      .def_property_readonly(
          "described", [](const PngFile& file) { return file.header().described; },
          "Whether it has text or EXIF, which may say how the image is turned.")
      .def_property_readonly(
          "quiet", [](const PngFile& file) { return file.header().quiet; },
          "Whether libpng is known to read it without a message.")
      .def_property_readonly(
          "data_end", [](const PngFile& file) { return file.header().data_end; },
          "Number of bytes up to the end of the last chunk of image data.")
      .def_property_readonly(
          "pixel_bytes", [](const PngFile& file) { return png_pixel_bytes(file.header()); },
          "Bytes of a pixel that decode_png writes: 1 to 4.")
      .def_property_readonly(
          "whole_bytes", [](const PngFile& file) { return png_whole_bytes(file.header()); },
          "The same with whole samples: 1 to 8.");
  m.def("decode_png", &decode_png, py::arg("file"), py::arg("out").noconvert(), py::arg("whole") = false,
        "Writes the samples of a PNG to an array (height, width, pixel_bytes), as Pillow's image of it has them: the\n"
        "higher byte of samples of 16 bits, except gray ones, which have both, the lower one first; 255 for 1 where "
        "gray\n"
        "has one bit; palette indices. whole: both bytes of all samples of 16 bits, the lower one first. Raises "
        "NeedsPillow where the data are damaged, and ValueError where the array\n"
        "does not fit.");
}

}  // namespace headrace
