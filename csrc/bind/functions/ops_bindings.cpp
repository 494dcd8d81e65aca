// Binds single stages, for tests and headrace.ops: arrays in, core call without the GIL, arrays out.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "bind/convert.h"
#include "bind/functions/jpeg_file.h"
#include "bind/plan.h"
#include "bind/unlocked.h"
#include "core/fuse/blur.h"
#include "core/fuse/fuse.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/kernels/float_resize/float_loops.h"
#include "core/kernels/float_resize/float_resampler.h"
#include "core/kernels/resize/kernels.h"
#include "core/kernels/resize/resample_table.h"
#include "core/kernels/warp/tensor_warp.h"
#include "core/plan/plan.h"

namespace py = pybind11;

namespace headrace {
namespace {

const Kernels& set_of(const std::optional<std::string>& isa) {
  if (!isa) return kernels();
  if (const Kernels* named = kernels_named(isa->c_str())) return *named;
  throw py::value_error("isa: this processor or build lacks " + *isa);
}

/// Where a plan's sample is written. Throws value_error where `out` has not the plan's size or the elements of `lut`.
Output output_of(const Plan& plan, const py::array& lut, py::array& out, const std::string& layout) {
  const bool planar = to_layout(layout) == Layout::kPlanar;
  if (lut.ndim() != 2 || lut.shape(1) != 256 || !(lut.flags() & py::array::c_style)) {
    throw py::value_error("lut: contiguous, of shape (C, 256)");
  }
  if ((lut.shape(0) != 1 && lut.shape(0) != 3) || (lut.itemsize() != 1 && lut.itemsize() != 2 && lut.itemsize() != 4)) {
    throw py::value_error("lut: of 1 or 3 channels, with elements of 1, 2 or 4 bytes");
  }
  const int c = planar ? 0 : 2, y = planar ? 1 : 0, x = planar ? 2 : 1;
  const Box& box = plan.last.box;
  if (out.ndim() != 3 || out.shape(c) != lut.shape(0) || out.shape(y) != box.height || out.shape(x) != box.width ||
      out.itemsize() != lut.itemsize()) {
    throw py::value_error(
        "out: C x H x W (planar) or H x W x C (channels_last) elements as the last box and the lut have them");
  }
  Output output;
  output.base = static_cast<uint8_t*>(out.mutable_data());
  output.channel_stride = out.strides(c);
  output.row_stride = out.strides(y);
  output.pixel_stride = out.strides(x);
  output.lut = {static_cast<int>(lut.itemsize()), static_cast<int>(lut.shape(0)), lut.data()};
  return output;
}

void fuse(const py::array_t<uint8_t, py::array::c_style>& image, const py::dict& from, const py::array& lut,
          py::array out, const std::string& layout, const std::optional<std::string>& isa) {
  if (image.ndim() != 3 || image.shape(2) < 1 || image.shape(2) > kPixelBytes) {
    throw py::value_error("image: uint8 of shape (H, W, 1 to 4)");
  }
  const Plan plan = to_plan(from);
  const Output output = output_of(plan, lut, out, layout);
  const Size size{static_cast<int>(image.shape(1)), static_cast<int>(image.shape(0))};
  const auto bytes = static_cast<int>(image.shape(2));
  const RawImage raw{image.data(), size, bytes == 2 ? 1 : bytes, image.strides(0), bytes, 1};
  const Kernels& set = set_of(isa);
  const Unlocked unlocked;
  thread_local Fuser usual(kernels());  // keeps its memory, and what it has found out about the table
  if (&set == &kernels()) {
    usual.run(plan, raw, output);
  } else {
    Fuser(set).run(plan, raw, output);
  }
}

void decode_fuse(const JpegFile& file, const py::dict& from, const py::array& lut, py::array out,
                 const std::string& layout, EntryPoints* entry_points) {
  const Plan plan = to_plan(from);
  const Output output = output_of(plan, lut, out, layout);
  const JpegHeader& header = file.header();
  const std::span<const uint8_t> bytes = file.bytes();
  const Unlocked unlocked;
  thread_local JpegDecoder decoder(kernels().blocks);
  thread_local Fuser fuser(kernels());
  RowSink& sink = fuser.begin(plan, header.size, output);
  decoder.decode(bytes, header, decode_box(plan, header.size), sink, entry_points);
}

// torchvision's GaussianBlur with these weights, before it is rounded: `blur_rule` compares the floats with the
// installed torch's.
py::array_t<float> gaussian_blur(const py::array_t<uint8_t, py::array::c_style>& image,
                                 const py::array_t<float, py::array::c_style>& row,
                                 const py::array_t<float, py::array::c_style>& column,
                                 const std::optional<std::string>& isa) {
  if (image.ndim() != 3 || image.shape(2) != kPixelBytes) throw py::value_error("image: uint8 of shape (H, W, 4)");
  if (row.ndim() != 1 || column.ndim() != 1 || row.size() < 1 || column.size() < 1) {
    throw py::value_error("row, column: at least one weight each");
  }
  const Size size{static_cast<int>(image.shape(1)), static_cast<int>(image.shape(0))};
  if (row.size() / 2 >= size.width || column.size() / 2 >= size.height) {
    throw py::value_error("the image is no larger than half the kernel");
  }
  py::array_t<float> made({image.shape(0), image.shape(1), image.shape(2)});
  const BlurWeights weights{{row.data(), static_cast<size_t>(row.size())},
                            {column.data(), static_cast<size_t>(column.size())}};
  const EffectLoops& loops = *set_of(isa).effects;
  const uint8_t* pixels = image.data();
  float* to = made.mutable_data();
  {
    const Unlocked unlocked;
    Blur().run(pixels, size, weights, loops, to);
  }
  return made;
}

// For finding how torch rounds: floats are compared with torch's, because bytes rarely differ.
py::tuple tensor_warp(const py::array_t<uint8_t, py::array::c_style>& image, const std::array<float, 6>& matrix,
                      bool fused_positions, bool fused) {
  if (image.ndim() != 3 || image.shape(2) != kPixelBytes) throw py::value_error("image: uint8 of shape (H, W, 4)");
  const Size size{static_cast<int>(image.shape(1)), static_cast<int>(image.shape(0))};
  const std::array<float, 6> m = tensor_matrix({matrix}, size);
  py::array_t<float> grid({image.shape(0), image.shape(1), py::ssize_t{2}});
  py::array_t<float> made({image.shape(0), image.shape(1), py::ssize_t{3}});
  float *positions = grid.mutable_data(), *to = made.mutable_data();
  const uint8_t* pixels = image.data();
  {
    const Unlocked unlocked;
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x, positions += 2, to += 3) {
        const float u = from_centre(x, size.width), v = from_centre(y, size.height);
        for (size_t axis = 0; axis < 2; ++axis) {
          const float* half = m.data() + 3 * axis;
          positions[axis] =
              fused_positions ? tensor_coordinate<true>(half, u, v) : tensor_coordinate<false>(half, u, v);
        }
        const auto at = [&](size_t axis, int length) {
          return fused ? tensor_position<true>(positions[axis], length)
                       : tensor_position<false>(positions[axis], length);
        };
        const float column = at(0, size.width), row = at(1, size.height);
        const std::array<float, 4> values =
            fused ? tensor_sampled<true>(pixels, size, column, row) : tensor_sampled<false>(pixels, size, column, row);
        std::copy_n(values.begin(), 3, to);
      }
    }
  }
  return py::make_tuple(grid, made);
}

py::array_t<float> float_resize(const py::array_t<uint8_t, py::array::c_style>& image, int height, int width,
                                bool cubic, bool fused, const std::optional<std::string>& isa) {
  if (image.ndim() != 3 || image.shape(2) != kPixelBytes) throw py::value_error("image: uint8 of shape (H, W, 4)");
  const Size in{static_cast<int>(image.shape(1)), static_cast<int>(image.shape(0))};
  if (std::min({in.width, in.height, width, height}) < 1) throw py::value_error("sizes: at least 1");
  const Filter filter = fused ? (cubic ? Filter::kFusedBicubic : Filter::kFusedBilinear)
                              : (cubic ? Filter::kFloatBicubic : Filter::kFloatBilinear);
  py::array_t<float> made({height, width, kPixelBytes});
  const FloatLoops& loops = *set_of(isa).floats;
  const uint8_t* pixels = image.data();
  float* to = made.mutable_data();
  {
    const Unlocked unlocked;
    FloatTable x, y;
    x.build(in.width, width, filter, 0, width);
    y.build(in.height, height, filter, 0, height);
    const size_t row_bytes = static_cast<size_t>(in.width) * kPixelBytes;
    const size_t row_floats = static_cast<size_t>(width) * kPixelBytes;
    AlignedArray<float> between, scratch;
    between.resize(static_cast<size_t>(in.height) * row_floats);
    scratch.resize(static_cast<size_t>(in.width) * kFloatScratch);
    for (int row = 0; row < in.height; row += kFloatRows) {
      const auto at = static_cast<size_t>(row);
      loops.along_x(pixels + at * row_bytes, row_bytes, std::min(kFloatRows, in.height - row), x.view(),
                    &between[at * row_floats], row_floats, scratch.data());
    }
    for (int row = 0; row < height; ++row) {
      loops.along_y(&between[static_cast<size_t>(y.start[row]) * row_floats], row_floats, y.view(), row,
                    static_cast<int>(row_floats), to + static_cast<size_t>(row) * row_floats);
    }
  }
  return made;
}

/// Writes rows of RGBX floats, without X, to an array whose strides are in floats.
class ValueRows final : public FloatRowSink {
 public:
  ValueRows(float* base, ptrdiff_t channel, ptrdiff_t row, ptrdiff_t pixel, int width)
      : base_(base), channel_(channel), row_(row), pixel_(pixel), width_(width) {}
  void push(const float* row) override {
    for (int c = 0; c < kPixelBytes - 1; ++c) {
      float* to = base_ + c * channel_;
      for (int x = 0; x < width_; ++x) to[x * pixel_] = row[x * kPixelBytes + c];
    }
    base_ += row_;
  }

 private:
  float* base_;
  ptrdiff_t channel_, row_, pixel_;
  int width_;
};

void resize_values(const py::array_t<uint8_t, py::array::c_style>& image, const py::array_t<float>& map, bool cubic,
                   bool fused, py::array_t<float> out, const std::string& layout,
                   const std::optional<std::string>& isa) {
  const bool planar = to_layout(layout) == Layout::kPlanar;
  const int c = planar ? 0 : 2, y = planar ? 1 : 0, x = planar ? 2 : 1;
  if (image.ndim() != 3 || (image.shape(2) != 3 && image.shape(2) != kPixelBytes)) {
    throw py::value_error("image: uint8 of shape (H, W, 3 or 4)");
  }
  if (map.ndim() != 2 || map.shape(0) != 3 || map.shape(1) != 256 || !(map.flags() & py::array::c_style)) {
    throw py::value_error("map: float32, contiguous, of shape (3, 256)");
  }
  if (out.ndim() != 3 || out.shape(c) != 3) throw py::value_error("out: float32 of three channels");
  const Size in{static_cast<int>(image.shape(1)), static_cast<int>(image.shape(0))};
  const Size size{static_cast<int>(out.shape(x)), static_cast<int>(out.shape(y))};
  if (std::min({in.width, in.height, size.width, size.height}) < 1) throw py::value_error("sizes: at least 1");
  const auto stride = [&](int axis) { return out.strides(axis) / static_cast<ptrdiff_t>(sizeof(float)); };
  ValueRows rows(out.mutable_data(), stride(c), stride(y), stride(x), size.width);
  ResizeJob job;
  job.in = in;
  job.out = size;
  job.filter = fused ? (cubic ? Filter::kFusedBicubic : Filter::kFusedBilinear)
                     : (cubic ? Filter::kFloatBicubic : Filter::kFloatBilinear);
  job.want = {0, 0, size.width, size.height};
  job.have = {0, 0, in.width, in.height};
  const auto bytes = static_cast<int>(image.shape(2));
  const RawImage raw{image.data(), in, bytes, image.strides(0), bytes, 1};
  const float* entries = map.data();
  const Kernels& set = set_of(isa);
  const Unlocked unlocked;
  thread_local FloatResampler usual(*kernels().floats);
  FloatResampler other(*set.floats);
  FloatResampler& resampler = &set == &kernels() ? usual : other;
  resampler.begin(job, entries, rows);
  RawRows(set).push(raw, job.have, resampler);
}

py::tuple resample_table(int in, int out, int filter, int first, int count) {
  ResampleTable table;
  {
    const Unlocked unlocked;
    table.build(in, out, static_cast<Filter>(filter), first, count);
  }
  return py::make_tuple(py::array_t<int32_t>(table.count, table.start.data()),
                        py::array_t<int32_t>(table.count, table.taps.data()),
                        py::array_t<int32_t>({table.count, table.taps_stride}, table.weight.data()));
}

}  // namespace

void bind_ops(py::module_& m) {
  m.def("fuse", &fuse, py::arg("image"), py::arg("plan"), py::arg("lut"), py::arg("out"), py::arg("layout") = "planar",
        py::arg("isa") = py::none(),
        "Runs a plan, as bind/plan.h has it, on one image: gray, gray and alpha, RGB, or RGBX (or RGBA). Alpha has no\n"
        "effect.");
  m.def("decode_fuse", &decode_fuse, py::arg("file"), py::arg("plan"), py::arg("lut"), py::arg("out"),
        py::arg("layout") = "planar", py::arg("entry_points") = py::none(),
        "Runs a plan on a JPEG in one pass: decodes only what the plan needs. `entry_points`: where the rows begin,\n"
        "used and learned, unless the plan needs the whole file. Raises NeedsPillow where the file is not clean.");
  m.def("blur", &gaussian_blur, py::arg("image"), py::arg("row"), py::arg("column"), py::arg("isa") = py::none(),
        "torchvision's GaussianBlur of an RGBX image with these weights, before it is rounded: float32 (H, W, 4).");
  m.def("tensor_warp", &tensor_warp, py::arg("image"), py::arg("matrix"), py::arg("fused_positions"), py::arg("fused"),
        "torchvision's affine map of an RGBX image by the bilinear filter, in floats: the grid (H, W, 2) of torch's\n"
        "grid_sample, and the values (H, W, 3) before they are rounded.");
  m.def("float_resize", &float_resize, py::arg("image"), py::arg("height"), py::arg("width"), py::arg("cubic"),
        py::arg("fused"), py::arg("isa") = py::none(),
        "torch's antialiased resize of an RGBX image in float32, before it is rounded: float32 (height, width, 4).");
  m.def(
      "resize_values", &resize_values, py::arg("image"), py::arg("map").noconvert(), py::arg("cubic"), py::arg("fused"),
      py::arg("out").noconvert(), py::arg("layout") = "planar", py::arg("isa") = py::none(),
      "torch's antialiased resize in float32 of the values (3, 256) that the bytes of an RGB or RGBX image stand for.");
  m.def("resample_table", &resample_table, py::arg("in_size"), py::arg("out_size"), py::arg("filter"), py::arg("first"),
        py::arg("count"), "(start, taps, weights) of Pillow's resize along one axis.");
  m.def(
      "isas",
      [] {
        py::list names;
        for (const char* name : {"scalar", "avx2", "avx512"}) {
          if (kernels_named(name)) names.append(name);
        }
        return names;
      },
      "The instruction sets that this processor and this build have.");
}

}  // namespace headrace
