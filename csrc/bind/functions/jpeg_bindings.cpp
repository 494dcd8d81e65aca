// Binds the header parser and the decoders, for tests, bench/ and headrace.ops.
#include <pybind11/numpy.h>

#include <cstring>
#include <string>
#include <vector>

#include "bind/convert.h"
#include "bind/functions/jpeg_file.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "core/jpeg/sequential/jpeg_header.h"
#include "core/kernels/resize/kernels.h"

namespace py = pybind11;

namespace headrace {
namespace {

py::dict header_dict(const py::bytes& data) {
  JpegHeader header;
  {
    const auto bytes = span_of(data);
    const Unlocked unlocked;
    header = parse_jpeg_header(bytes);
  }
  py::list components;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i)
    components.append(py::make_tuple(header.component[i].id, header.component[i].h, header.component[i].v));
  using namespace py::literals;
  return py::dict("width"_a = header.size.width, "height"_a = header.size.height, "components"_a = components,
                  "progressive"_a = header.progressive, "arithmetic"_a = header.arithmetic, "jfif"_a = header.jfif,
                  "adobe_transform"_a = header.adobe_transform, "exif_orientation"_a = header.exif_orientation,
                  "turned"_a = header.turned, "restart_interval"_a = header.restart_interval, "scans"_a = header.scans,
                  "scan_begin"_a = header.scan_begin, "scan_end"_a = header.scan_end, "not_plain"_a = header.not_plain);
}

/// Copies rows to memory, without gaps.
class CopySink : public RowSink {
 public:
  CopySink(uint8_t* out, size_t row_bytes) : out_(out), row_bytes_(row_bytes) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    for (int i = 0; i < count; ++i, rows += stride, out_ += row_bytes_) std::memcpy(out_, rows, row_bytes_);
  }

 private:
  uint8_t* out_;
  size_t row_bytes_;
};

void copy_box(std::span<const uint8_t> bytes, const JpegHeader& header, const Box& box, uint8_t* out,
              EntryPoints* entry_points = nullptr) {
  CopySink sink(out, static_cast<size_t>(box.width) * kPixelBytes);
  const Unlocked unlocked;
  thread_local JpegDecoder decoder(kernels().blocks);
  decoder.decode(bytes, header, box, sink, entry_points);
}

py::bytes decode_crop(const py::bytes& data, int x, int y, int width, int height) {
  const JpegFile file(data);
  const JpegHeader& header = file.header();
  const Box box{x, y, width, height};
  if (width < 1 || height < 1 || x > header.size.width - width || y > header.size.height - height ||
      !box.inside(header.size))
    throw py::value_error("the box is not inside the image");
  // Uninitialised, then filled in place: the only way to make a bytes object without a copy.
  auto pixels = py::reinterpret_steal<py::bytes>(
      PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(width) * height * kPixelBytes));
  if (!pixels) throw py::error_already_set();
  copy_box(file.bytes(), header, box, reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(pixels.ptr())));
  return pixels;
}

void decode_whole(const JpegFile& file, py::array_t<uint8_t> out, EntryPoints* entry_points) {
  const auto [width, height] = file.header().size;
  if (out.ndim() != 3 || out.shape(0) != height || out.shape(1) != width || out.shape(2) != kPixelBytes ||
      !(out.flags() & py::array::c_style)) {
    throw py::value_error("out: contiguous, of shape (height, width, 4) as the file has them");
  }
  copy_box(file.bytes(), file.header(), whole_image(file.header().size), out.mutable_data(), entry_points);
}

// The rows of each component, without the padding to whole blocks.
std::vector<py::array_t<uint8_t>> planes(const py::bytes& data) {
  const JpegFile file(data);
  const JpegHeader& header = file.header();
  const PlaneLayout whole = plane_layout(header, whole_image(header.size));
  std::vector<uint8_t> samples(whole.bytes);
  PlaneDecoder(kernels().blocks).decode(file.bytes(), header, whole, samples.data());
  std::vector<py::array_t<uint8_t>> made;
  for (size_t c = 0; c < static_cast<size_t>(header.components); ++c) {
    const Plane& plane = whole.image.plane[c];
    auto& rows = made.emplace_back(std::vector<py::ssize_t>{plane.height, plane.width});
    for (py::ssize_t y = 0; y < plane.height; ++y) {
      std::memcpy(rows.mutable_data(y, 0), samples.data() + whole.offset[c] + y * plane.stride, size_t(plane.width));
    }
  }
  return made;
}

}  // namespace

void bind_jpeg(py::module_& m) {
  py::register_exception<NeedsPillow>(m, "NeedsPillow", PyExc_ValueError).doc() =
      "The bytes are not a clean, plain JPEG: Pillow is to read them. The message says why.";
  m.def("jpeg_header", &header_dict, py::arg("data"),
        "What the markers of a JPEG say, without decoding it. `not_plain` is None where the native decoder serves it,\n"
        "else the reason why Pillow does. Any bytes are allowed.");
  m.def("decode_crop", &decode_crop, py::arg("data"), py::arg("x"), py::arg("y"), py::arg("width"), py::arg("height"),
        "RGBX bytes, row by row, of a box of a JPEG. Raises NeedsPillow where the file is not plain or not clean, and\n"
        "ValueError where the box leaves the image.");
  py::class_<JpegFile>(m, "JpegFile", "A plain JPEG, whose markers are read once. Raises NeedsPillow for other bytes.")
      .def(py::init<py::bytes>(), py::arg("data"))
      .def_property_readonly("width", [](const JpegFile& file) { return file.header().size.width; })
      .def_property_readonly("height", [](const JpegFile& file) { return file.header().size.height; })
      .def_property_readonly(
          "components", [](const JpegFile& file) { return file.header().components; }, "1 or 3.")
      .def_property_readonly(
          "turned", [](const JpegFile& file) { return file.header().turned; },
          "Whether the file may have an orientation other than 1.")
      .def_property_readonly("data", &JpegFile::data, "The bytes.");
  m.def(
      "decode_whole", &decode_whole, py::arg("file"), py::arg("out").noconvert(), py::arg("entry_points") = py::none(),
      "Writes the RGBX pixels of a JPEG to an array. `entry_points`: as for decode_fuse. Raises NeedsPillow where the\n"
      "file is not clean, and ValueError where the array has not the image's size.");
  m.def("jpeg_planes", &planes, py::arg("data"),
        "The samples of each component, uint8 (height, width), as libjpeg-turbo decodes them. Raises NeedsPillow.");
}

}  // namespace headrace
