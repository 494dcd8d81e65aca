// Binds the texture channels of single images, for headrace.transforms and tests.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/texture_conversion.h"
#include "bind/unlocked.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/kernels/resize/kernels.h"
#include "core/kernels/textures/texture_scratch.h"

namespace py = pybind11;

namespace headrace {
namespace {

/// A texture, and the memory of threads that have used it.
class PyTexture {
 public:
  PyTexture(int height, int width, const py::object& bands, const py::object& tables)
      : texture_(to_texture({width, height}, bands, tables)) {}

  // `image`: uint8 (H, W, 1 or 3), any strides. `out`: float32 (13, H, W), any strides.
  void make(const py::array_t<uint8_t>& image, py::array_t<float>& out, const std::optional<std::string>& isa) {
    const Size size = texture_->view().size;
    if (image.ndim() != 3 || image.shape(0) != size.height || image.shape(1) != size.width ||
        (image.shape(2) != 1 && image.shape(2) != 3)) {
      throw py::value_error("image: uint8 (H, W, 1) or (H, W, 3) of the texture's size");
    }
    if (out.ndim() != 3 || out.shape(0) != kTextureChannels || out.shape(1) != size.height ||
        out.shape(2) != size.width) {
      throw py::value_error("out: float32 (13, H, W) of the texture's size");
    }
    const Kernels* set = isa ? kernels_named(isa->c_str()) : &kernels();
    if (set == nullptr) throw py::value_error("isa: this processor or build lacks " + *isa);
    const RawImage from{.data = image.data(),
                        .size = size,
                        .channels = static_cast<int>(image.shape(2)),
                        .row_stride = image.strides(0),
                        .pixel_stride = image.strides(1),
                        .channel_stride = image.strides(2)};
    const TextureTarget to{reinterpret_cast<uint8_t*>(out.mutable_data()), out.strides(0), out.strides(1),
                           out.strides(2)};
    std::unique_ptr<TextureScratch> scratch = take();
    {
      const Unlocked unlocked;
      expand(*set, from, whole_image(size), scratch->pixels(), static_cast<size_t>(size.width) * kPixelBytes);
      set->make_texture(texture_->view(), scratch->view(), to);
    }
    spare_.push_back(std::move(scratch));
  }

 private:
  std::unique_ptr<TextureScratch> take() {
    if (spare_.empty()) return std::make_unique<TextureScratch>(texture_->view().size);
    auto one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }

  const std::shared_ptr<const Texture> texture_;
  // Guarded by the GIL: the child of a fork would inherit a mutex that another thread has locked.
  std::vector<std::unique_ptr<TextureScratch>> spare_;
};

}  // namespace

void bind_textures(py::module_& module) {
  py::class_<PyTexture>(module, "Texture")
      .def(py::init<int, int, const py::object&, const py::object&>(), py::arg("height"), py::arg("width"),
           py::arg("bands"), py::arg("tables"))
      .def("make", &PyTexture::make, py::arg("image").noconvert(), py::arg("out").noconvert(),
           py::arg("isa") = py::none());
}

}  // namespace headrace
