// The DLPack C ABI (version 0), reduced to what a CPU tensor needs: https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

namespace headrace::dlpack {

enum DeviceType : int32_t { kCpu = 1 };
enum TypeCode : uint8_t { kUInt = 1, kFloat = 2, kBfloat = 4 };

struct Device {
  int32_t type, id;
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* owner;
  void (*deleter)(ManagedTensor*);
};

inline constexpr const char* kCapsuleName = "dltensor";  // the consumer of the tensor renames the capsule

}  // namespace headrace::dlpack
