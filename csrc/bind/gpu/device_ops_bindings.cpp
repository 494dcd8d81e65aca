// Binds the stages on a device, for headrace.ops.
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "bind/convert.h"
#include "bind/gpu/devices.h"
#include "bind/plan.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "gpu/batches/device_ops.h"

namespace py = pybind11;

namespace headrace {
namespace {

// An image as Python passes it: address, row stride, channel stride, height, width.
using ImageTuple = std::array<int64_t, 5>;

DeviceImage image_of(const ImageTuple& from) {
  DeviceImage image;
  for (int c = 0; c < 3; ++c) image.plane[c] = reinterpret_cast<const uint8_t*>(from[0] + c * from[2]);
  image.stride = static_cast<int>(from[1]);
  image.size = {static_cast<int>(from[4]), static_cast<int>(from[3])};
  return image;
}

void fuse(DeviceOps& self, const std::vector<ImageTuple>& images, const py::list& plans, const py::buffer& lut,
          const std::string& layout, uintptr_t output, uintptr_t stream) {
  const std::vector<Plan> resolved = to_plans(plans);
  if (resolved.empty()) return;
  const Size size = resolved.front().last.box.size();
  const ElementTable table(lut, size, to_layout(layout));
  std::vector<DeviceImage> sources;
  for (const ImageTuple& one : images) sources.push_back(image_of(one));
  const Unlocked unlocked;
  self.fuse(sources, resolved, size, table.strides, table.entries, reinterpret_cast<uint8_t*>(output),
            static_cast<Stream>(stream));
}

// False: Pillow must decode the file.
bool decode(DeviceOps& self, const py::bytes& data, uintptr_t output, uintptr_t stream) {
  const std::span<const uint8_t> bytes = span_of(data);
  const Unlocked unlocked;
  try {
    self.decode(bytes, reinterpret_cast<uint8_t*>(output), static_cast<Stream>(stream));
  } catch (const NeedsPillow&) {
    return false;
  }
  return true;
}

}  // namespace

void bind_device_ops(py::module_& module) {
  py::class_<DeviceOps>(module, "Ops")
      .def(py::init(
               [](const std::string& kind, int index) { return std::make_unique<DeviceOps>(device_of(kind, index)); }),
           py::arg("kind"), py::arg("index"))
      .def("fuse", &fuse, py::arg("images"), py::arg("plans"), py::arg("lut"), py::arg("layout"), py::arg("output"),
           py::arg("stream"))
      .def("decode", &decode, py::arg("data"), py::arg("output"), py::arg("stream"));
}

}  // namespace headrace
