// Binds what Pillow's JpegImageFile keeps of the markers that it reads when a file is opened.
#include <array>
#include <string>

#include "bind/convert.h"
#include "core/jpeg/huffman/huffman_block.h"
#include "core/jpeg/sequential/opening_markers.h"

namespace py = pybind11;

namespace headrace {
namespace {

constexpr size_t kValues = kOpeningTable - 1;
constexpr int kSof2 = 0xC2, kApp0 = 0xE0, kComment = 16;  // after the numbers of application segments

/// A key or a name, made once: it lives as long as the process.
py::handle known(const char* text) {
  PyObject* const made = PyUnicode_InternFromString(text);
  if (made == nullptr) throw py::error_already_set();
  return made;
}

/// "APP0" to "APP15", "COM".
py::handle name_of(int number) {
  static const std::array<py::handle, kComment + 1> names = [] {
    std::array<py::handle, kComment + 1> made;
    for (size_t i = 0; i < kComment; ++i) made[i] = known(("APP" + std::to_string(i)).c_str());
    made[kComment] = known("COM");
    return made;
  }();
  return names[static_cast<size_t>(number)];
}

py::bytes to_bytes(std::span<const uint8_t> body) { return {reinterpret_cast<const char*>(body.data()), body.size()}; }

int word(std::span<const uint8_t> body, size_t at) { return body[at] << 8 | body[at + 1]; }

/// Image.info, in the order in which Pillow adds to it.
class Info {
 public:
  py::dict made;

  void add(const OpeningSegment& segment) {
    const std::span<const uint8_t> body = segment.body;
    switch (segment.kind) {
      case OpeningKind::kJfif:
        return add_jfif(word(body, 5), body[7], py::make_tuple(word(body, 8), word(body, 10)));
      case OpeningKind::kAdobe:
        return add_adobe(word(body, 5), body[11]);
      case OpeningKind::kProfile:
        profile_ = body.subspan(kOpeningProfile);
        return;
      default:
        return;
    }
  }
  void add_comment(const py::bytes& comment) {
    static const py::handle key = known("comment");
    made[key] = comment;
  }
  void add_frame(bool is_progressive) {
    static const py::handle progressive = known("progressive"), progression = known("progression"),
                            icc_profile = known("icc_profile");
    if (is_progressive) {
      made[progressive] = 1;
      made[progression] = 1;
    }
    if (profile_.data() != nullptr) made[icc_profile] = to_bytes(profile_);
  }

 private:
  void add_jfif(int version, int unit, const py::tuple& density) {
    static const py::handle jfif = known("jfif"), jfif_version = known("jfif_version"), dpi = known("dpi"),
                            jfif_unit = known("jfif_unit"), jfif_density = known("jfif_density");
    made[jfif] = version;
    made[jfif_version] = py::make_tuple(version / 256, version % 256);
    if (unit == 1) made[dpi] = density;
    made[jfif_unit] = unit;
    made[jfif_density] = density;
  }
  void add_adobe(int version, int transform) {
    static const py::handle adobe = known("adobe"), adobe_transform = known("adobe_transform");
    made[adobe] = version;
    made[adobe_transform] = transform;
  }

  std::span<const uint8_t> profile_;
};

py::list values_of(std::span<const uint8_t> zigzag) {
  py::list made(kValues);
  for (size_t i = 0; i < kValues; ++i)
    PyList_SET_ITEM(made.ptr(), kNaturalOrder[i], PyLong_FromLong(zigzag[i]));  // a number that lives for ever
  return made;
}

py::object opening_markers(const py::bytes& head) {
  const std::optional<OpeningMarkers> found = read_opening_markers(span_of(head));
  if (!found) return py::none();
  Info info;
  py::list applications, layers;
  py::dict tables;
  py::tuple size;
  for (const OpeningSegment& segment : found->segments) {
    const std::span<const uint8_t> body = segment.body;
    switch (segment.kind) {
      case OpeningKind::kTables:
        for (auto table = body; !table.empty(); table = table.subspan(kOpeningTable))
          tables[py::int_(table[0])] = values_of(table.subspan(1, kValues));
        break;
      case OpeningKind::kFrame:
        size = py::make_tuple(word(body, 3), word(body, 1));
        info.add_frame(segment.marker == kSof2);
        for (size_t at = 6; at < body.size(); at += 3)
          layers.append(py::make_tuple(body[at], body[at + 1] / 16, body[at + 1] & 15, body[at + 2]));
        break;
      case OpeningKind::kComment: {
        const py::bytes content = to_bytes(body);
        applications.append(py::make_tuple(name_of(kComment), content));
        info.add_comment(content);
        break;
      }
      default:
        applications.append(py::make_tuple(name_of(segment.marker - kApp0), to_bytes(body)));
        info.add(segment);
    }
  }
  return py::make_tuple(found->end, size, layers, tables, applications, info.made);
}

}  // namespace

void bind_opening(py::module_& m) {
  m.def("opening_markers", &opening_markers, py::arg("head"),
        "What Pillow keeps of the markers of a JPEG before its first scan: (bytes up to the scan, size, layer,\n"
        "quantization, applist, info). `head`: the file's first bytes. None where the markers are not the usual ones,\n"
        "or go on after them.");
}

}  // namespace headrace
