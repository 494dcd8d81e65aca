// Binds the table of byte ranges of files, and the check of an index of tar shards against them.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/io/source/file_ranges.h"
#include "core/io/tar/tar_check.h"

namespace py = pybind11;

namespace headrace {
namespace {

/// A check, and the objects whose memory it uses.
struct PyTarCheck {
  std::shared_ptr<const TarCheck> check;
  py::object owner;
};

// Extensions, the index of each sample's extension among them, offsets, lengths, and numbers or None.
using Field = std::tuple<std::vector<py::bytes>, Vector<uint8_t>, Vector<uint64_t>, Vector<uint64_t>,
                         std::optional<Vector<int64_t>>>;

std::vector<std::string> strings(const std::vector<py::bytes>& list) { return {list.begin(), list.end()}; }

PyTarCheck tar_check(const py::buffer& keys, const Vector<uint64_t>& key_offsets, const std::vector<Field>& fields) {
  std::vector<TarField> made;
  for (const auto& [extensions, choice, offsets, lengths, numbers] : fields) {
    made.push_back({strings(extensions), span_of(choice), span_of(offsets), span_of(lengths),
                    numbers ? span_of(*numbers) : std::span<const int64_t>()});
  }
  const py::buffer_info info = bytes_of(keys);
  auto check = std::make_shared<TarCheck>(span_of(info), span_of(key_offsets), std::move(made));
  return {std::move(check), py::make_tuple(keys, key_offsets, fields)};
}

// Raises OSError.
void check_row(const PyTarCheck& self, int64_t row, const py::bytes& path) {
  if (row < 0 || row >= self.check->size()) throw py::index_error("a row is not in the table");
  const std::string name(path);
  try {
    const Unlocked unlocked;
    const auto part = self.check->wanted(row);
    if (part) self.check->check(row, OpenFile(name.c_str()), {}, 0);
  } catch (const Error& error) {
    const int code = error.os_errno() != 0 ? error.os_errno() : EIO;
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(error.what(), static_cast<Py_ssize_t>(std::strlen(error.what())), "backslashreplace"));
    PyErr_SetObject(PyExc_OSError, py::make_tuple(code, text).ptr());
    throw py::error_already_set();
  }
}

Vector<uint64_t> name_marks(const py::buffer& keys, const Vector<uint64_t>& key_offsets,
                            const std::vector<py::bytes>& extensions, const Vector<uint8_t>& choice) {
  const py::buffer_info info = bytes_of(keys);
  const std::span<const uint8_t> held = span_of(info);
  const std::vector<std::string> names = strings(extensions);
  if (choice.size() != key_offsets.size()) throw std::out_of_range("the arrays of the members differ in length");
  if (key_offsets.size() > 0 && (held.empty() || held.back() != 0))
    throw std::out_of_range("the last key does not end");
  Vector<uint64_t> made(key_offsets.size());
  for (py::ssize_t i = 0; i < key_offsets.size(); ++i) {
    if (key_offsets.at(i) >= held.size()) throw std::out_of_range("a key is not among the keys");
    const auto* key = reinterpret_cast<const char*>(held.data()) + key_offsets.at(i);
    made.mutable_at(i) = name_mark(key, names.at(choice.at(i)));
  }
  return made;
}

/// Bytes from the middle of an archive.
class Piece final : public ByteSource {
 public:
  Piece(std::string bytes, uint64_t begin, uint64_t size) : bytes_(std::move(bytes)), begin_(begin), size_(size) {}
  uint64_t size() const override { return size_; }
  size_t read(uint8_t* to, size_t length, uint64_t offset) const override {
    if (offset < begin_ || offset - begin_ > bytes_.size()) return 0;
    const auto at = static_cast<size_t>(offset - begin_);
    const size_t some = std::min(length, bytes_.size() - at);
    std::memcpy(to, bytes_.data() + at, some);
    return some;
  }

 private:
  const std::string bytes_;
  const uint64_t begin_, size_;
};

// Whether a member with this mark is at `offset` of an archive of `size` bytes. `bytes`: those of the archive that
// start at `begin` and end with the member's own header.
bool is_marked(const py::bytes& bytes, uint64_t begin, uint64_t size, uint64_t offset, uint64_t length, uint64_t mark) {
  return is_marked_at(Piece(std::string(bytes), begin, size), offset, length, mark);
}

// `stamps`: (size, time of modification in ns) of each file, int64 (n, 2). The other arrays are not copied.
PyBlobTable table_of_ranges(const py::bytes& paths, const Vector<uint64_t>& path_offsets, const Vector<int64_t>& stamps,
                            const Vector<uint32_t>& file_of, const Vector<uint64_t>& offsets,
                            const Vector<uint64_t>& lengths, const PyTarCheck* check) {
  if (stamps.ndim() != 2 || stamps.shape(1) != 2) throw py::value_error("a file's stamp is its size and its time");
  std::vector<FileStamp> list;
  for (py::ssize_t i = 0; i < stamps.shape(0); ++i) {
    list.push_back({static_cast<uint64_t>(stamps.at(i, 0)), stamps.at(i, 1)});
  }
  if (check != nullptr && check->check->size() != file_of.size()) throw py::value_error("another number of rows");
  auto table = std::make_shared<FileRanges>(std::string(paths), to_vector<uint64_t>(path_offsets), std::move(list),
                                            span_of(file_of), span_of(offsets), span_of(lengths),
                                            DescriptorCache::of_process(), check == nullptr ? nullptr : check->check);
  return {std::move(table), py::make_tuple(file_of, offsets, lengths, check == nullptr ? py::none() : check->owner)};
}

}  // namespace

void bind_ranges(py::module_& module) {
  py::class_<PyTarCheck>(module, "TarCheck")
      .def(py::init(&tar_check), py::arg("keys"), py::arg("key_offsets").noconvert(), py::arg("fields"))
      .def("check", &check_row, py::arg("row"), py::arg("path"));
  module.def("name_marks", &name_marks, py::arg("keys"), py::arg("key_offsets").noconvert(), py::arg("extensions"),
             py::arg("choice").noconvert());
  module.def("is_marked_member", &is_marked, py::arg("data"), py::arg("begin"), py::arg("size"), py::arg("offset"),
             py::arg("length"), py::arg("mark"));
  module.def("table_of_ranges", &table_of_ranges, py::arg("paths"), py::arg("path_offsets"), py::arg("stamps"),
             py::arg("file_of").noconvert(), py::arg("offsets").noconvert(), py::arg("lengths").noconvert(),
             py::arg("check") = nullptr);
}

}  // namespace headrace
