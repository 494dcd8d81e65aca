// Binds the pipelines of several recipes: that which makes several views of each sample, and that of joined datasets.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/core/process_recorder.h"
#include "core/pipeline/views/views_backend.h"
#include "core/pipeline/workers/joined_backend.h"

namespace py = pybind11;

namespace headrace {
namespace {

// `recipes`, `luts`, `layouts`: one for each view; all views have the same draws. `stacked`: whether a sample's views
// are adjacent in memory.
std::unique_ptr<PyPipeline> views_pipeline(const std::vector<py::object>& recipes, const std::vector<py::buffer>& luts,
                                           const std::vector<std::string>& layouts, bool stacked, int threads,
                                           int64_t max_pixels, const std::string& pass_order, int slots_kept,
                                           const std::string& isa) {
  if (recipes.empty() || recipes.size() != luts.size() || recipes.size() != layouts.size()) {
    throw py::value_error("one table and one layout for each view, at least one");
  }
  std::vector<SampleOptions> views;
  for (size_t i = 0; i < recipes.size(); ++i) {
    views.push_back(to_sample_options(recipes[i], luts[i], layouts[i], max_pixels, pass_order));
  }
  PipelineOptions options;
  options.recipe.draws = views.front().recipe.draws;
  options.recorder = process_recorder();
  options.threads = threads;
  options.kernels = named_kernels(isa);
  const Kernels& chosen = options.kernels != nullptr ? *options.kernels : kernels();
  options.backend = std::make_shared<ViewsBackend>(std::move(views), stacked, chosen, static_cast<size_t>(slots_kept));
  return std::make_unique<PyPipeline>(std::move(options));
}

// `recipes`, `luts`: one for each kind of sample; the first draw of a sample is the number of its recipe.
std::unique_ptr<PyPipeline> joined_pipeline(const std::vector<py::object>& recipes, const std::vector<py::buffer>& luts,
                                            const std::string& layout, int threads, int64_t max_pixels,
                                            const std::string& pass_order, int slots_kept, const std::string& isa) {
  if (recipes.empty() || recipes.size() != luts.size()) {
    throw py::value_error("one table for each recipe, at least one");
  }
  std::vector<SampleOptions> kinds;
  for (size_t i = 0; i < recipes.size(); ++i) {
    kinds.push_back(to_sample_options(recipes[i], luts[i], layout, max_pixels, pass_order));
  }
  PipelineOptions options{kinds.front()};
  options.recorder = process_recorder();
  options.threads = threads;
  options.kernels = named_kernels(isa);
  const Kernels& chosen = options.kernels != nullptr ? *options.kernels : kernels();
  const auto backend = std::make_shared<JoinedBackend>(std::move(kinds), chosen, static_cast<size_t>(slots_kept));
  options.recipe.draws = backend->draws();
  options.backend = backend;
  return std::make_unique<PyPipeline>(std::move(options));
}

}  // namespace

void bind_views(py::module_& module) {
  module.def("views_pipeline", &views_pipeline, py::arg("recipes"), py::arg("luts"), py::kw_only(), py::arg("layouts"),
             py::arg("stacked"), py::arg("threads"), py::arg("max_pixels"), py::arg("pass_order"),
             py::arg("slots_kept"), py::arg("isa") = "");
  module.def("joined_pipeline", &joined_pipeline, py::arg("recipes"), py::arg("luts"), py::kw_only(), py::arg("layout"),
             py::arg("threads"), py::arg("max_pixels"), py::arg("pass_order"), py::arg("slots_kept"),
             py::arg("isa") = "");
}

}  // namespace headrace
