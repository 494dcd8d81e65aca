// The double of nvJPEG is strict: each broken rule of nvjpeg.h is refused and remembered.
#include <doctest/doctest.h>

#include "support/jpeg_samples.h"
#include "support/nvjpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// A handle, a state and one image to decode.
struct Caller {
  Caller() {
    REQUIRE(api->CreateEx(nvjpeg::kHardware, nullptr, nullptr, nvjpeg::kNoPipeline, &handle) == 0);
    REQUIRE(api->JpegStateCreate(handle, &state) == 0);
    for (size_t c = 0; c < planes.size(); ++c) {
      image.channel[c] = planes[c].data();
      image.pitch[c] = 40;
    }
  }
  ~Caller() {
    api->JpegStateDestroy(state);
    api->Destroy(handle);
  }
  int begin(int batch = 1, int format = nvjpeg::kYuv) {
    return api->DecodeBatchedInitialize(handle, state, batch, 1, format);
  }
  int decode() {
    const unsigned char* data = file.data();
    const size_t length = file.size();
    return api->DecodeBatched(handle, state, &data, &length, &image, nullptr);
  }

  /// Checks the status of a refused call, and its complaint.
  void complains(int status, int got, const char* words) {
    CHECK(got == status);
    CHECK_MESSAGE(fake.complaint().find(words) != std::string::npos, fake.complaint());
    fake.forgive();
  }

  FakeLibrary fake;
  const std::shared_ptr<const nvjpeg::Api> api = nvjpeg::load(FakeLibrary::candidates());
  nvjpeg::Handle handle = nullptr;
  nvjpeg::State state = nullptr;
  std::vector<uint8_t> file = make_jpeg({.width = 37, .height = 29});
  std::array<std::vector<uint8_t>, 3> planes{std::vector<uint8_t>(40 * 29), std::vector<uint8_t>(40 * 29),
                                             std::vector<uint8_t>(40 * 29)};
  nvjpeg::Image image;
};

}  // namespace

TEST_CASE("a state is initialized before each batch, and after each failure") {
  Caller caller;
  caller.complains(kNotInitialized, caller.decode(), "not initialized");
  caller.complains(kInvalidParameter, caller.begin(0), "no images");
  caller.complains(kInvalidParameter, caller.begin(1, 3), "no format of planes");
  REQUIRE(caller.begin() == 0);
  CHECK(caller.decode() == 0);
  CHECK(caller.decode() == 0);  // once per batch size is enough
  caller.file.resize(caller.file.size() / 2);
  CHECK(caller.decode() == kBadJpeg);
  caller.complains(kNotInitialized, caller.decode(), "not since a failure");
}

TEST_CASE("planes have memory and rows that are long enough, files have bytes") {
  Caller caller;
  REQUIRE(caller.begin() == 0);
  caller.image.pitch[2] = 36;
  caller.complains(kInvalidParameter, caller.decode(), "too short for a plane");
  caller.image.pitch[2] = 37;
  REQUIRE(caller.begin() == 0);
  CHECK(caller.decode() == 0);
  caller.image.channel[1] = nullptr;
  caller.complains(kInvalidParameter, caller.decode(), "no memory for a plane");
  REQUIRE(caller.begin(1, nvjpeg::kY) == 0);
  CHECK(caller.decode() == 0);  // luma alone needs one plane
  caller.file.clear();
  caller.complains(kInvalidParameter, caller.decode(), "an empty file");
}

TEST_CASE("gray images are not decoded to three planes, nor what the engines lack") {
  Caller caller;
  caller.file = make_jpeg({.width = 37, .height = 29, .components = 1});
  REQUIRE(caller.begin() == 0);
  caller.complains(kInvalidParameter, caller.decode(), "a gray image");
  caller.file = make_jpeg({.width = 37, .height = 29, .progressive = true});
  REQUIRE(caller.begin() == 0);
  CHECK(caller.decode() == kNotSupported);
}

TEST_CASE("handles and states are used while they are there, where the device is current") {
  Caller caller;
  nvjpeg::State state = nullptr;
  REQUIRE(caller.api->JpegStateCreate(caller.handle, &state) == 0);
  CHECK(caller.api->JpegStateDestroy(state) == 0);
  caller.complains(kInvalidParameter, caller.api->JpegStateDestroy(state), "a state that is none");
  caller.complains(kInvalidParameter, caller.api->DecodeBatchedInitialize(caller.handle, state, 1, 1, nvjpeg::kY),
                   "none of the handle's");
  caller.complains(kInvalidParameter, caller.api->JpegStateCreate(nullptr, &state), "a handle that is none");
  nvjpeg::Handle other = nullptr;
  REQUIRE(caller.api->CreateEx(nvjpeg::kGpuHybrid, nullptr, nullptr, 0, &other) == 0);
  caller.complains(kInvalidParameter, caller.api->DecodeBatchedInitialize(other, caller.state, 1, 1, nvjpeg::kY),
                   "none of the handle's");
  REQUIRE(caller.api->JpegStateCreate(other, &state) == 0);
  caller.complains(kInvalidParameter, caller.api->Destroy(other), "a handle that has states");
  CHECK(caller.api->JpegStateDestroy(state) == 0);
  CHECK(caller.api->Destroy(other) == 0);
  WatchedDevice device;
  caller.fake.behave(on(device));
  caller.complains(kInvalidParameter, caller.begin(), "where the device is not current");
}

TEST_CASE("a state is used by one thread at a time") {
  Caller caller;
  REQUIRE(caller.begin() == 0);
  FakeBehaviour meddling;  // makes another call while the first one writes
  static Caller* here = nullptr;
  here = &caller;
  meddling.copy = [](void*, nvjpeg::CudaStream, unsigned char*, const unsigned char*, size_t) { here->begin(); };
  caller.fake.behave(meddling);
  caller.complains(0, caller.decode(), "another thread uses");
}
