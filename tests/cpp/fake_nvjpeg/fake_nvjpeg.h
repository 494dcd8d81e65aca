// A stand-in for libnvjpeg.so that decodes into host memory: its settings, and the record of its calls.
#pragma once

#include "gpu/decoders/nvjpeg_api.h"

namespace headrace::test {

/// Statuses of nvjpeg.h that the fake returns by itself.
enum FakeStatus : int {
  kNotInitialized = 1,
  kInvalidParameter = 2,
  kBadJpeg = 3,
  kNotSupported = 4,
  kNoMemory = 5,
  kExecutionFailed = 6,
  kIncomplete = 10
};

/// Settings of the fake.
struct FakeBehaviour {
  int major = 13, minor = 3, patch = 2;
  int property = 0, create = 0, info = 0, preallocate = 0, initialize = 0;  // statuses of the calls
  unsigned engines = 7;
  int states = 1 << 20;        // the most at once; one more gets kNoMemory
  int bad_image = kBadJpeg;    // status of a call with an image that cannot be decoded
  bool others_written = true;  // whether such a call writes its other images

  /// The device of the functions below.
  void* device = nullptr;
  /// Whether the device is current in this thread; null: it always is.
  bool (*current)(void* device) = nullptr;
  /// Copies in the stream's order, as a decoder on CUDA cores writes; null: images are written during the call,
  /// whatever is on the stream, as the JPEG engines do.
  void (*copy)(void* device, nvjpeg::CudaStream stream, unsigned char* to, const unsigned char* from,
               size_t bytes) = nullptr;
  /// Makes the next wait for the stream fail, and the call with a bad image succeed. Null: the call fails at once.
  void (*fail_later)(void* device, nvjpeg::CudaStream stream) = nullptr;
};

/// Counters of the fake.
struct FakeRecord {
  int handles = 0, states = 0;             // alive now
  int calls = 0, images = 0, largest = 0;  // of DecodeBatched: calls, decoded images, most images of a call
  int gray = 0, hardware = 0;              // of the decoded images
};

}  // namespace headrace::test

#pragma GCC visibility push(default)
extern "C" {
void fake_nvjpeg_behave(const headrace::test::FakeBehaviour* behaviour);  // clears counters and complaint
void fake_nvjpeg_record(headrace::test::FakeRecord* record);
const char* fake_nvjpeg_complaint();  // the first rule of nvjpeg.h that a caller broke; empty: none
}
#pragma GCC visibility pop
