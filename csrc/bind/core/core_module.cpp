// Defines the module headrace._core from its parts.
#include <pybind11/pybind11.h>

// jpeglib.h needs both of these included before it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <string>

#include "bind/convert.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/sequential/jpeg_session.h"
#include "core/kernels/resize/kernels.h"

namespace py = pybind11;

// Safe without the GIL: see docs/decisions/0050.
PYBIND11_MODULE(_core, module, py::mod_gil_not_used()) {
  module.doc() = "Native core of headrace: not a public interface; see headrace.DataLoader and headrace.ops.";
  module.def("instruction_set", [] { return headrace::kernels().name; }, "The kernels in use: scalar, avx2 or avx512.");
  module.def(
      "row_lanes",
      [] {
        const headrace::BlockLoops* const loops = headrace::kernels().blocks;
        const headrace::RowLanes* const lanes = loops == nullptr ? nullptr : headrace::row_lanes_named(loops->name);
        return lanes == nullptr ? 0 : lanes->lanes;
      },
      "Rows of a JPEG whose codes are decoded side by side; 0: one after the other.");
  module.def(
      "libjpeg_version",
      [] {
        constexpr int kVersion = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005 is 2.1.5
        return std::to_string(kVersion / 1000000) + "." + std::to_string(kVersion / 1000 % 1000) + "." +
               std::to_string(kVersion % 1000);
      },
      "The libjpeg-turbo that this module was built with.");
  module.def(
      "libjpeg_has_vectors", [] { return headrace::kLibraryHasVectors; },
      "Whether it has its vector code: without it, rare kinds of JPEG are left to Pillow.");
  headrace::bind_jpeg(module);
  headrace::bind_png(module);
  headrace::bind_packing(module);
  headrace::bind_entry_points(module);
  headrace::bind_helpers(module);
  headrace::bind_ops(module);
  headrace::bind_memory(module);
  headrace::bind_pipeline(module);
  headrace::bind_columns(module);
  headrace::bind_clips(module);
  headrace::bind_ranges(module);
  headrace::bind_remote(module);
  headrace::bind_http(module);
  headrace::bind_caching(module);
  headrace::bind_tar(module);
  headrace::bind_composed(module);
  headrace::bind_recorder(module);
  headrace::bind_views(module);
  headrace::bind_textures(module);
  headrace::bind_mixing(module);
  headrace::bind_opening(module);
  headrace::bind_draws(module);
}
