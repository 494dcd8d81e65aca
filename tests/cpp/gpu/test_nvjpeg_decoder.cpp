// The code that drives nvJPEG, with its double: every sample in its place, and no leaks after failures.
#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "core/jpeg/planes/plane_layout.h"
#include "gpu/decoders/nvjpeg_decoder.h"
#include "gpu/decoders/router.h"
#include "support/checked_device.h"
#include "support/jpeg_samples.h"
#include "support/nvjpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

/// Files, and memory for their planes on a device.
class Encoded {
 public:
  Encoded(WatchedDevice& device, std::vector<Bytes> files) : device_(device), files_(std::move(files)) {
    const DeviceScope current(device_);
    for (const Bytes& file : files_) {
      const JpegHeader header = parse_jpeg_header(file);
      layouts_.push_back(plane_layout(header, whole_image(header.size)));
      memory_.push_back(device_.allocate(layouts_.back().bytes));
      images_.push_back({file, layouts_.back().at(memory_.back())});
    }
  }
  ~Encoded() {
    for (uint8_t* one : memory_) device_.free(one);
  }
  Encoded(const Encoded&) = delete;
  Encoded& operator=(const Encoded&) = delete;

  std::span<const EncodedImage> images() const { return images_; }
  EncodedImage& image(size_t i) { return images_[i]; }

  /// The number of pixels that differ from libjpeg's; memory that was not written holds EmulatedDevice::kPoison.
  int wrong(size_t i) const {
    const Bytes whole = decode_whole(files_[i]);
    const PlanarImage& planes = images_[i].planes;
    int count = 0;
    for (int y = 0; y < planes.height; ++y) {
      for (int x = 0; x < planes.width; ++x) {
        const uint8_t* want = &whole[(size_t(y) * size_t(planes.width) + size_t(x)) * kPixelBytes];
        count += pixel_at(planes, x, y) != pack_rgbx(want[0], want[1], want[2]);
      }
    }
    return count;
  }

 private:
  WatchedDevice& device_;
  const std::vector<Bytes> files_;
  std::vector<PlaneLayout> layouts_;
  std::vector<uint8_t*> memory_;
  std::vector<EncodedImage> images_;
};

/// A library and a device. The destructor checks that nothing is left on the device.
struct Bench {
  ~Bench() {
    CHECK(device->strays() == 0);
    CHECK(device->alive() == 0);
  }
  std::shared_ptr<NvjpegLibrary> library(bool hardware = true) {
    return std::make_shared<NvjpegLibrary>(device, FakeLibrary::candidates(), hardware);
  }

  FakeLibrary fake;
  std::shared_ptr<WatchedDevice> device = checked_device<WatchedDevice>();
};

/// Decodes in a thread like that of a lane. Returns the reason of a refusal, or an empty text.
std::string refusal(WatchedDevice& device, NvjpegDecoder& decoder, std::span<const EncodedImage> images) {
  std::string why;
  std::thread([&] {
    device.enter();
    try {
      why = decoder.decode(images);
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
  }).join();
  return why;
}

bool decode(WatchedDevice& device, NvjpegDecoder& decoder, std::span<const EncodedImage> images) {
  return refusal(device, decoder, images).empty();
}

std::vector<Bytes> colour_files() {
  std::vector<Bytes> files;
  for (const Size size : {Size{37, 29}, Size{16, 16}, Size{65, 17}, Size{200, 90}}) {
    for (const int h : {1, 2}) {
      for (const int v : {1, 2}) {
        files.push_back(make_jpeg({.width = size.width, .height = size.height, .h = {h, 1, 1}, .v = {v, 1, 1}}));
      }
    }
  }
  return files;
}

std::vector<Bytes> gray_files() {
  return {make_jpeg({.width = 37, .height = 29, .components = 1}), make_jpeg({.width = 64, .components = 1})};
}

Bytes damaged(Bytes file) {
  for (size_t i = file.size() / 2; i + 4 < file.size(); ++i) file[i] = 0x5A;
  return file;
}

}  // namespace

TEST_CASE("samples of every sampling that the router lets through, on engines and on CUDA cores") {
  for (const bool hardware : {true, false}) {
    CAPTURE(hardware);
    Bench bench;
    bench.fake.behave(hardware ? on(*bench.device) : in_stream_order(*bench.device));
    NvjpegDecoder decoder(bench.library(hardware), 16);
    for (const auto& files : {colour_files(), gray_files(), colour_files()}) {
      for (const Bytes& file : files) REQUIRE(not_for_device(parse_jpeg_header(file)) == nullptr);
      const Encoded encoded(*bench.device, files);
      REQUIRE(decode(*bench.device, decoder, encoded.images()));
      for (size_t i = 0; i < files.size(); ++i) CHECK(encoded.wrong(i) == 0);
    }
    // Groups that grow and shrink.
    const Encoded encoded(*bench.device, colour_files());
    int groups = 3, images = 2 * 16 + 2;
    for (const size_t count : {size_t{1}, size_t{5}, size_t{2}}) {
      REQUIRE(decode(*bench.device, decoder, encoded.images().first(count)));
      ++groups;
      images += static_cast<int>(count);
    }
    const FakeRecord record = bench.fake.record();
    CHECK(record.calls == groups);
    CHECK(record.images == images);
    CHECK(record.gray == 2);
    CHECK(record.hardware == (hardware ? images : 0));
  }
}

TEST_CASE("what the library says of itself") {
  Bench bench;
  bench.fake.behave(on(*bench.device));
  const std::string path = FakeLibrary::candidates()[0];
  CHECK(bench.library()->describe() == "nvJPEG 13.3.2 (" + path + ") on 7 JPEG engines");
  CHECK(bench.library(false)->describe() == "nvJPEG 13.3.2 (" + path + ") on CUDA cores");
}

TEST_CASE("a library that does not serve leaves nothing allocated, and says why") {
  struct Case {
    FakeBehaviour behaviour;
    const char* said;
  };
  Bench bench;
  const FakeBehaviour plain = on(*bench.device);
  auto with = [&](auto change) {
    FakeBehaviour behaviour = plain;
    change(behaviour);
    return behaviour;
  };
  const Case cases[] = {
      {with([](FakeBehaviour& b) { b.create = kExecutionFailed; }), "nvJPEG finds no JPEG engines (execution failed)"},
      {with([](FakeBehaviour& b) { b.engines = 0; }), "no JPEG engines; in a container, NVIDIA_DRIVER_CAPABILITIES"},
      {with([](FakeBehaviour& b) { b.info = kNotSupported; }), "this GPU or its driver has no JPEG engines"},
      {with([](FakeBehaviour& b) { b.minor = 2; }), "is version 13.2.2; 13.3 or a later 13 is needed"},
      {with([](FakeBehaviour& b) { b.major = 12, b.minor = 9; }), "is version 12.9.2; 13.3 or a later 13 is needed"},
      {with([](FakeBehaviour& b) { b.major = 14, b.minor = 0; }), "is version 14.0.2; 13.3 or a later 13 is needed"},
      {with([](FakeBehaviour& b) { b.property = kNotInitialized; }), "does not tell its version"}};
  for (const Case& one : cases) {
    bench.fake.behave(one.behaviour);
    CHECK_THROWS_WITH_AS(bench.library(), doctest::Contains(one.said), std::runtime_error);
    CHECK(bench.fake.record().handles == 0);
  }
  bench.fake.behave(with([](FakeBehaviour& b) { b.create = kExecutionFailed; }));
  CHECK_THROWS_WITH_AS(bench.library(false), "nvJPEG does not start (execution failed)", std::runtime_error);
  bench.fake.behave(with([](FakeBehaviour& b) { b.engines = 0; }));
  CHECK_NOTHROW(bench.library(false));  // CUDA cores need no engine
}

TEST_CASE("a decoder that is not made whole leaves nothing allocated") {
  Bench bench;
  bench.fake.behave(on(*bench.device));
  const auto library = bench.library();
  for (int made = 0; made < 2; ++made) {  // a stream and an event
    bench.device->make_only(made);
    CHECK_THROWS_WITH_AS(NvjpegDecoder(library, 4), "the device makes no more", std::runtime_error);
    CHECK(bench.fake.record().states == 0);
    CHECK(bench.device->alive() == 0);
  }
  bench.device->make_only(100);
  FakeBehaviour few = on(*bench.device);
  few.states = 1;
  bench.fake.behave(few);
  const NvjpegDecoder first(library, 4);
  CHECK_THROWS_WITH_AS(NvjpegDecoder(library, 4), "nvJPEG makes no state: allocator failure", std::runtime_error);
  CHECK(bench.fake.record().states == 1);
}

TEST_CASE("memory that cannot be had in advance is had later") {
  Bench bench;
  FakeBehaviour poor = on(*bench.device);
  poor.preallocate = kNoMemory;
  bench.fake.behave(poor);
  NvjpegDecoder decoder(bench.library(), 16);
  const Encoded encoded(*bench.device, gray_files());
  CHECK(decode(*bench.device, decoder, encoded.images()));
  CHECK(encoded.wrong(0) + encoded.wrong(1) == 0);
}

TEST_CASE("a call that fails counts for none of its images, and the next one is as good as new") {
  for (const int status : {int{kBadJpeg}, int{kExecutionFailed}, int{kIncomplete}}) {
    for (const bool others_written : {true, false}) {
      for (const bool later : {true, false}) {
        CAPTURE(status);
        CAPTURE(later);
        Bench bench;
        FakeBehaviour failing = later ? failing_later(*bench.device) : on(*bench.device);
        failing.bad_image = status;
        failing.others_written = others_written;
        bench.fake.behave(failing);
        NvjpegDecoder decoder(bench.library(), 16);
        std::vector<Bytes> files = colour_files();
        files[2] = damaged(files[2]);
        Encoded encoded(*bench.device, files);
        CHECK_FALSE(decode(*bench.device, decoder, encoded.images()));
        CHECK(decode(*bench.device, decoder, encoded.images().first(2)));
        CHECK(decode(*bench.device, decoder, encoded.images().subspan(3)));
        for (size_t i = 0; i < files.size(); ++i) {
          if (i != 2) CHECK(encoded.wrong(i) == 0);
        }
      }
    }
  }
}

TEST_CASE("a call that is refused before it begins") {
  Bench bench;
  FakeBehaviour refusing = on(*bench.device);
  refusing.initialize = kNoMemory;
  bench.fake.behave(refusing);
  NvjpegDecoder decoder(bench.library(), 16);
  const Encoded encoded(*bench.device, gray_files());
  CHECK(refusal(*bench.device, decoder, encoded.images()) == "nvJPEG begins no batch: allocator failure");
  CHECK(bench.fake.record().calls == 0);
  bench.fake.behave(on(*bench.device));
  CHECK(decode(*bench.device, decoder, encoded.images()));
}

TEST_CASE("files that the engines lack are refused, as the library refuses them") {
  Bench bench;
  bench.fake.behave(on(*bench.device));
  NvjpegDecoder decoder(bench.library(), 16);
  const Encoded encoded(*bench.device, {make_jpeg({.progressive = true})});
  CHECK(refusal(*bench.device, decoder, encoded.images()) == "nvJPEG decodes no batch: JPEG not supported");
}

TEST_CASE("decoders of one library at once") {
  for (const bool hardware : {true, false}) {
    Bench bench;
    bench.fake.behave(hardware ? on(*bench.device) : in_stream_order(*bench.device));
    constexpr size_t kThreads = 4;
    const auto library = bench.library(hardware);
    std::vector<std::unique_ptr<NvjpegDecoder>> decoders;
    std::vector<std::unique_ptr<Encoded>> encoded;
    for (size_t i = 0; i < kThreads; ++i) {
      decoders.push_back(std::make_unique<NvjpegDecoder>(library, 16));
      encoded.push_back(std::make_unique<Encoded>(*bench.device, i % 2 == 0 ? colour_files() : gray_files()));
    }
    std::vector<std::thread> threads;
    std::atomic<int> refused{0};
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        bench.device->enter();
        for (int k = 0; k < 10; ++k) refused += !decoders[i]->decode(encoded[i]->images()).empty();
      });
    }
    for (std::thread& one : threads) one.join();
    CHECK(refused == 0);
    for (const auto& one : encoded) {
      for (size_t i = 0; i < one->images().size(); ++i) CHECK(one->wrong(i) == 0);
    }
  }
}
