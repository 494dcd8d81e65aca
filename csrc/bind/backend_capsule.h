// Passes a backend from the module _gpu to the module _core: a capsule that owns a shared pointer to it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "bind/unlocked.h"
#include "core/pipeline/batch/backend.h"

namespace headrace {

inline constexpr const char* kBackendCapsule = "headrace.Backend";

/// A capsule that shares ownership of the backend. Needs the GIL.
inline pybind11::capsule wrap_backend(std::shared_ptr<Backend> backend) {
  auto* owned = new std::shared_ptr<Backend>(std::move(backend));
  return pybind11::capsule(owned, kBackendCapsule, [](PyObject* object) {
    auto* held = static_cast<std::shared_ptr<Backend>*>(PyCapsule_GetPointer(object, kBackendCapsule));
    const Unlocked unlocked;  // the destructor may wait for the backend's threads
    delete held;
  });
}

/// The backend of such a capsule. Raises ValueError for any other capsule. Needs the GIL.
inline std::shared_ptr<Backend> unwrap_backend(const pybind11::capsule& capsule) {
  auto* held = static_cast<std::shared_ptr<Backend>*>(PyCapsule_GetPointer(capsule.ptr(), kBackendCapsule));
  if (held == nullptr) throw pybind11::error_already_set();
  return *held;
}

}  // namespace headrace
