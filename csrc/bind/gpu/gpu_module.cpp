// Defines the module headrace._gpu, which makes backends on devices. Imported only where a device is asked for.
#include <pybind11/pybind11.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "bind/backend_capsule.h"
#include "bind/convert.h"
#include "bind/gpu/devices.h"
#include "bind/unlocked.h"
#include "gpu/batches/device_backend.h"
#include "gpu/decoders/emulated_decoder.h"
#include "gpu/decoders/nvjpeg_decoder.h"
#include "gpu/decoders/router.h"
#include "gpu/device/emulated_device.h"
#ifdef HEADRACE_WITH_CUDA
#include "gpu/device/cuda_device.h"
#endif

namespace py = pybind11;

namespace headrace {

std::shared_ptr<Device> device_of(const std::string& kind, int index) {
  if (kind == "emulated") return std::make_shared<EmulatedDevice>();
#ifdef HEADRACE_WITH_CUDA
  if (kind == "cuda") return cuda_device(index);
#else
  (void)index;
#endif
  throw py::value_error("this build of headrace has no device of kind " + kind);
}

namespace {

std::shared_ptr<NvjpegLibrary> new_nvjpeg(const std::shared_ptr<Device>& device, const std::string& decoder,
                                          const std::vector<std::string>& candidates) {
  if (decoder != "hardware" && decoder != "cuda") throw py::value_error("unknown decoder " + decoder);
  return std::make_shared<NvjpegLibrary>(device, candidates, decoder == "hardware");
}

// One handle for each GPU and backend, kept until the process ends: nvJPEG takes half a second to make one, and every
// loader needs one. Never destroyed: the driver may be unloaded earlier.
std::shared_ptr<NvjpegLibrary> nvjpeg_of(int index, const std::string& decoder,
                                         const std::vector<std::string>& candidates) {
  using Key = std::tuple<int, std::string, std::vector<std::string>>;
  static std::mutex& mutex = *new std::mutex;
  static auto& made = *new std::map<Key, std::shared_ptr<NvjpegLibrary>>;
  const std::shared_ptr<Device> device = device_of("cuda", index);  // throws in a forked child, which has no CUDA
  const std::lock_guard lock(mutex);
  std::shared_ptr<NvjpegLibrary>& library = made[{index, decoder, candidates}];
  if (library == nullptr) library = new_nvjpeg(device, decoder, candidates);
  return library;
}

}  // namespace

DecodeLane::Decoders decoders_of(const std::string& kind, int index, const std::shared_ptr<Device>& device,
                                 const std::string& decoder, const std::vector<std::string>& candidates, int count,
                                 int group) {
  DecodeLane::Decoders decoders;
  std::shared_ptr<NvjpegLibrary> library;
  if (kind != "emulated") {
    library = nvjpeg_of(index, decoder, candidates);
  } else if (const char* stand_in = std::getenv("HEADRACE_NVJPEG_DOUBLE")) {
    // Not one of the candidates: the real library would treat the emulation's host memory as GPU memory.
    library = new_nvjpeg(device, decoder, {stand_in});
  }
  for (int i = 0; i < count; ++i) {
    if (library == nullptr) {
      decoders.push_back(std::make_unique<EmulatedDecoder>(group));
    } else {
      decoders.push_back(std::make_unique<NvjpegDecoder>(library, group));
    }
  }
  return decoders;
}

namespace {

// The first call starts CUDA.
std::string trouble() {
#ifdef HEADRACE_WITH_CUDA
  const Unlocked unlocked;
  return cuda_trouble();
#else
  return "headrace was built without CUDA";
#endif
}

py::capsule make_backend(const std::string& kind, int index, const py::object& recipe, const py::buffer& lut,
                         const std::string& layout, int64_t max_pixels, const std::string& pass_order, int batches,
                         const std::string& decoder, bool shared, int lanes, int group,
                         const std::vector<std::string>& nvjpeg, int frames) {
  SampleOptions options = to_sample_options(recipe, lut, layout, max_pixels, pass_order, frames);
  if (options.texture != nullptr) throw py::value_error("a device makes no textures");
  std::shared_ptr<Backend> backend;
  {
    const Unlocked unlocked;
    const std::shared_ptr<Device> device = device_of(kind, index);
    std::unique_ptr<DecodeLane> lane;
    if (decoder != "cpu") {
      lane = std::make_unique<DecodeLane>(decoders_of(kind, index, device, decoder, nvjpeg, lanes, group), shared);
    }
    backend = std::make_shared<DeviceBackend>(device, std::move(options), batches, std::move(lane));
  }
  return wrap_backend(std::move(backend));
}

std::string describe_nvjpeg(int index, const std::string& decoder, const std::vector<std::string>& candidates) {
  const Unlocked unlocked;
  return nvjpeg_of(index, decoder, candidates)->describe();
}

py::object route(const py::bytes& data) {
  const JpegHeader header = parse_jpeg_header(span_of(data));
  const char* reason = header.not_plain != nullptr ? header.not_plain : not_for_device(header);
  return reason == nullptr ? py::object(py::none()) : py::str(reason);
}

}  // namespace
}  // namespace headrace

PYBIND11_MODULE(_gpu, module) {
  module.doc() = "The GPU path of headrace: not a public interface; see headrace.DataLoader(device=...).";
#ifdef HEADRACE_WITH_CUDA
  module.attr("cuda") = true;
#else
  module.attr("cuda") = false;
#endif
  module.attr("sources") = HEADRACE_SOURCES;
  module.def("trouble", &headrace::trouble, "Why CUDA cannot be used, as a sentence; empty where it can.");
  module.def(
      "backend", &headrace::make_backend, py::arg("kind"), py::arg("index"), py::arg("recipe"), py::arg("lut"),
      py::kw_only(), py::arg("layout"), py::arg("max_pixels"), py::arg("pass_order"), py::arg("batches"),
      py::arg("decoder") = "cpu", py::arg("shared") = true, py::arg("lanes") = 2, py::arg("group") = 64,
      py::arg("nvjpeg") = std::vector<std::string>{}, py::arg("frames") = 1,
      "A backend for _core.Pipeline, with at most `batches` in flight on the device. `decoder`: cpu, hardware or\n"
      "cuda; `shared`: whether CPU threads may decode what a GPU's decoder has not begun; `lanes`: threads that\n"
      "call it; `group`: most images of a call; `nvjpeg`: libraries to try; `frames`: of a clip.");
  module.def("nvjpeg", &headrace::describe_nvjpeg, py::arg("index"), py::arg("decoder"), py::arg("candidates"),
             "Which nvJPEG would decode, in words. Raises RuntimeError where it would not.");
  module.def("route", &headrace::route, py::arg("data"),
             "None: a GPU's decoder may take this file. Else why the CPU decodes it.");
  headrace::bind_device_ops(module);
  headrace::bind_benchmarks(module);
}
