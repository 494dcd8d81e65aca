// Makes a DLPack capsule over a batch's slot.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "bind/dlpack_abi.h"
#include "core/pipeline/batch/slot_pool.h"

namespace headrace {

/// A capsule for torch.from_dlpack. It shares the lease, which ends when the last tensor on it is freed. `strides`: in
/// elements.
template <size_t kAxes>
pybind11::capsule slot_tensor(Lease slot, uint8_t* data, dlpack::DataType dtype,
                              const std::array<int64_t, kAxes>& shape, const std::array<int64_t, kAxes>& strides) {
  struct Owner {
    dlpack::ManagedTensor managed;
    std::array<int64_t, kAxes> shape, strides;
    Lease slot;
  };
  auto owner = std::make_unique<Owner>();
  owner->shape = shape;
  owner->strides = strides;
  owner->slot = std::move(slot);
  owner->managed.tensor = {
      data, {dlpack::kCpu, 0}, static_cast<int32_t>(kAxes), dtype, owner->shape.data(), owner->strides.data(), 0};
  owner->managed.owner = owner.get();
  owner->managed.deleter = [](dlpack::ManagedTensor* self) { delete static_cast<Owner*>(self->owner); };
  pybind11::capsule capsule(&owner->managed, dlpack::kCapsuleName, [](PyObject* object) {
    if (!PyCapsule_IsValid(object, dlpack::kCapsuleName)) return;  // consumed: the new owner calls the deleter
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(object, dlpack::kCapsuleName));
    managed->deleter(managed);
  });
  owner.release();
  return capsule;
}

}  // namespace headrace
