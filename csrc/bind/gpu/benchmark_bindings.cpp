// Binds the benchmarks of single stages of a device, for bench/.
#include <string>
#include <string_view>
#include <vector>

#include "bind/convert.h"
#include "bind/gpu/devices.h"
#include "bind/plan.h"
#include "bind/unlocked.h"
#include "gpu/batches/stage_benchmarks.h"

namespace py = pybind11;

namespace headrace {
namespace {

std::vector<std::span<const uint8_t>> spans_of(const std::vector<py::bytes>& files) {
  std::vector<std::span<const uint8_t>> spans;
  for (const std::string_view view : files) {
    spans.emplace_back(reinterpret_cast<const uint8_t*>(view.data()), view.size());
  }
  return spans;
}

py::tuple fuse(const std::string& kind, int index, const std::vector<py::bytes>& files, const py::list& plans,
               const py::buffer& lut, const std::string& layout, int repeats) {
  const auto spans = spans_of(files);
  const std::vector<Plan> resolved = to_plans(plans);
  if (resolved.empty()) throw py::value_error("plans: at least one");
  const Size size = resolved.front().last.box.size();
  const ElementTable table(lut, size, to_layout(layout));
  FuseTiming timing;
  {
    const Unlocked unlocked;
    timing = time_fuse(device_of(kind, index), spans, resolved, size, table.strides, table.entries, repeats);
  }
  return py::make_tuple(timing.ms, timing.bytes);
}

std::vector<float> copy(const std::string& kind, int index, size_t bytes, int repeats) {
  const Unlocked unlocked;
  return time_copy(device_of(kind, index), bytes, repeats);
}

std::vector<double> decode(const std::string& kind, int index, const std::string& decoder,
                           const std::vector<std::string>& candidates, const std::vector<py::bytes>& files, int lanes,
                           int group, int repeats) {
  const auto spans = spans_of(files);
  const Unlocked unlocked;
  const auto device = device_of(kind, index);
  return time_decoders(device, decoders_of(kind, index, device, decoder, candidates, lanes, group), spans, group,
                       repeats);
}

}  // namespace

void bind_benchmarks(py::module_& module) {
  module.def("time_fuse", &fuse, py::arg("kind"), py::arg("index"), py::arg("files"), py::arg("plans"), py::arg("lut"),
             py::arg("layout"), py::arg("repeats"),
             "(milliseconds of each run of the kernel on these JPEG files, the least number of bytes it transfers).");
  module.def("time_copy", &copy, py::arg("kind"), py::arg("index"), py::arg("bytes"), py::arg("repeats"),
             "Milliseconds of each copy within the device.");
  module.def("time_decoders", &decode, py::arg("kind"), py::arg("index"), py::arg("decoder"), py::arg("candidates"),
             py::arg("files"), py::arg("lanes"), py::arg("group"), py::arg("repeats"),
             "Seconds of each pass over the files by the device's decoders alone; 0 where one refused.");
}

}  // namespace headrace
