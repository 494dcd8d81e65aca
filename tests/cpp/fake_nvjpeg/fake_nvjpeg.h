// A stand-in for libnvjpeg.so, which decodes into the host's memory: what a test tells it to do, and what it saw.
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

/// What the fake does from now on.
struct FakeBehaviour {
  int major = 13, minor = 3, patch = 2;
  int property = 0, create = 0, info = 0, preallocate = 0, initialize = 0;  // statuses of the calls
  unsigned engines = 7;
  int states = 1 << 20;        // that may be there at once; one more finds no memory
  int bad_image = kBadJpeg;    // status of a call with an image that cannot be decoded
  bool others_written = true;  // the images that can be decoded, in such a call

  /// The device's part.
  void* device = nullptr;
  /// Whether the device is current in this thread; null: it always is.
  bool (*current)(void* device) = nullptr;
  /// Copies in the stream's order, as a decoder on CUDA cores writes; null: images are written during the call,
  /// whatever is on the stream, as the JPEG engines do.
  void (*copy)(void* device, nvjpeg::CudaStream stream, unsigned char* to, const unsigned char* from,
               size_t bytes) = nullptr;
  /// Makes the next wait for the stream fail: then the call that holds a bad image succeeds. Null: it fails at once.
  void (*fail_later)(void* device, nvjpeg::CudaStream stream) = nullptr;
};

/// What the fake saw.
struct FakeRecord {
  int handles = 0, states = 0;             // that are there now
  int calls = 0, images = 0, largest = 0;  // of DecodeBatched: calls, images that were decoded, most of a call
  int gray = 0, hardware = 0;              // of the images
};

}  // namespace headrace::test

#pragma GCC visibility push(default)
extern "C" {
void fake_nvjpeg_behave(const headrace::test::FakeBehaviour* behaviour);  // forgets what it saw, but what is there
void fake_nvjpeg_record(headrace::test::FakeRecord* record);
const char* fake_nvjpeg_complaint();  // the first rule of nvjpeg.h that a caller broke; empty: none
}
#pragma GCC visibility pop
